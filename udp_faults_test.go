package weir

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/memsys"
)

// TestUDPWithoutAddress: a socket whose address the kernel does not tell is not opened, as nobody could dial it.
func TestUDPWithoutAddress(t *testing.T) {
	t.Parallel()
	n := memsys.New()
	l := newLoop(t, Config{Kernel: NewKernel(n.Backend()), Faults: plan(t, "getsockname#1=ENOBUFS")})
	u, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{})
	if u != nil || !errors.Is(err, syscall.ENOBUFS) || !strings.Contains(err.Error(), "getsockname") {
		t.Errorf("ListenUDP: %v, %v", u, err)
	}
	if c := n.Calls(); c.Close != 1 || c.Add != 0 {
		t.Errorf("%d closes, %d adds", c.Close, c.Add)
	}
	if u, err = l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{}); err != nil || u.LocalAddr().Port() == 0 {
		t.Errorf("the second ListenUDP: %v, %v", u, err)
	}
}
