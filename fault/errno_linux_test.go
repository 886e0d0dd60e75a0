//go:build linux

package fault_test

import (
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirnet/weir/fault"
)

// TestErrnoNames compares the names with those of x/sys, number by number.
func TestErrnoNames(t *testing.T) {
	t.Parallel()
	named := 0
	for errno := syscall.Errno(1); errno < 2000; errno++ {
		got, want := fault.Action{Errno: errno}.String(), unix.ErrnoName(errno)
		switch {
		case got == strconv.Itoa(int(errno)):
		case got == want, errno == syscall.EOPNOTSUPP && got == "EOPNOTSUPP": // which x/sys names ENOTSUP
			named++
		default:
			t.Errorf("errno %d is written %s, want %s or the number", errno, got, want)
		}
		if p, err := fault.Parse("send=" + want); err == nil && p.Rules[0].Action.Errno != errno {
			t.Errorf("%s is read as %d, want %d", want, p.Rules[0].Action.Errno, errno)
		}
	}
	if named != 79 {
		t.Errorf("%d errnos have names, want 79", named)
	}
	for name, want := range map[string]syscall.Errno{"EWOULDBLOCK": syscall.EAGAIN, "ENOTSUP": syscall.EOPNOTSUPP} {
		if p, err := fault.Parse("send=" + name); err != nil || p.Rules[0].Action.Errno != want {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}
