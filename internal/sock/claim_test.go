package sock

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// TestClaim sets what is asked for, and nothing else; an error names the option.
func TestClaim(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		o    UDPOptions
		want []string
	}{
		{"nothing", UDPOptions{Local: addr("127.0.0.1:0"), UDPSettings: UDPSettings{Broadcast: true, TTL: 9}}, nil},
		{"ReuseAddr", UDPOptions{ReuseAddr: true}, []string{"ReuseAddr"}},
		{"ReusePort", UDPOptions{ReusePort: true}, []string{"ReusePort"}},
		{"both", UDPOptions{ReuseAddr: true, ReusePort: true}, []string{"ReuseAddr", "ReusePort"}},
	} {
		for at := 0; at <= len(row.want); at++ {
			k := &failing{Kernel: memsys.New().Backend().Kernel, err: syscall.ENOMEM}
			fd, err := k.Kernel.Socket(sys.IPv4, sys.UDP)
			if err != nil {
				t.Fatal(err)
			}
			k.at = at
			err = Claim(k, fd, row.o)
			if at == 0 {
				if err != nil || !slices.Equal(k.log, row.want) {
					t.Errorf("%s: %v, calls %v; want %v", row.name, err, k.log, row.want)
				}
				continue
			}
			var e *Error
			if !errors.As(err, &e) || e.Step != row.want[at-1] || !errors.Is(err, syscall.ENOMEM) || len(k.log) != at {
				t.Errorf("%s, call %d: %v, calls %v", row.name, at, err, k.log)
			}
		}
	}
	k := memsys.New().Backend().Kernel
	fd, err := k.Socket(sys.IPv4, sys.UDP)
	if err != nil {
		t.Fatal(err)
	}
	if err := Claim(k, fd, UDPOptions{Device: "nothing0"}); err == nil || !strings.Contains(err.Error(), `Device "nothing0"`) {
		t.Errorf("a device that is none: %v", err)
	}
}
