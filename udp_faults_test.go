package weir

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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

// TestLostWake: a wake that fails once is made again, so that a loop that waits hears of its Stop.
func TestLostWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, Config{Kernel: NewKernel(memsys.New().Backend()), Faults: plan(t, "wake#1x2=EAGAIN")})
		go func() {
			time.Sleep(time.Second)
			l.Stop(-1)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
		if hits := l.Faults().Hits(); hits[0] != 2 {
			t.Errorf("%v wakes failed, want 2", hits)
		}
	})
}
