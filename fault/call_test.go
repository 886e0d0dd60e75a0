package fault_test

import (
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/fault"
)

// TestCallNames holds the names, which are part of every plan's text.
func TestCallNames(t *testing.T) {
	t.Parallel()
	var got []string
	for c := range fault.AllCalls() {
		got = append(got, c.String())
	}
	want := strings.Fields(`socket bind connect getsockname getpeername describe dup close recv send recverr
		setsockopt getsockopt meminfo bindtodevice membership poller add modify remove wait wake
		unblock listen accept read write sendfile shutdown tcpinfo unlink writefiles readfiles`)
	if !slices.Equal(got, want) {
		t.Errorf("calls %q\nwant  %q", got, want)
	}
	for c := range fault.AllCalls() {
		if c == fault.Bind {
			break // a walk can be left
		}
	}
	for call, want := range map[fault.Call]string{fault.RecvErrors: "recverr", fault.Wake: "wake", 0: "call(0)", 99: "call(99)"} {
		if got := call.String(); got != want {
			t.Errorf("Call(%d) = %q, want %q", uint8(call), got, want)
		}
	}
}

// TestErrnos wants for each call some errnos, each once, and none that the contract keeps from callers.
func TestErrnos(t *testing.T) {
	t.Parallel()
	for c := range fault.AllCalls() {
		list := fault.Errnos(c)
		if len(list) < 2 {
			t.Errorf("%v: %v: too few", c, list)
		}
		once := map[syscall.Errno]bool{}
		for _, errno := range list {
			once[errno] = true
			_, err := fault.NewInjector(fault.Plan{Rules: []fault.Rule{{Call: c, Action: fault.Action{Errno: errno}}}})
			if err != nil || errno == 0 || errno == syscall.EINTR || errno == syscall.EFAULT {
				t.Errorf("%v: has %d (%v): %v", c, uintptr(errno), errno, err)
			}
		}
		if len(once) != len(list) {
			t.Errorf("%v: %v: one of them twice; once each: %v", c, list, slices.Collect(maps.Keys(once)))
		}
	}
	for _, c := range []fault.Call{0, 99} {
		if got := fault.Errnos(c); got != nil {
			t.Errorf("Errnos(%v) = %v, want nil", c, got)
		}
	}
	fault.Errnos(fault.Send)[0] = 0 // "The slice is the caller's."
	if fault.Errnos(fault.Send)[0] == 0 {
		t.Error("a caller has changed the table")
	}
}
