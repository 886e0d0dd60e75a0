package poll_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
	"github.com/weirnet/weir/internal/sys/systest"
)

func injector(t *testing.T, plan string) *fault.Injector {
	t.Helper()
	p, err := fault.Parse(plan)
	if err != nil {
		t.Fatal(err)
	}
	in, err := fault.NewInjector(p)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// TestContractWithFaults: a backend whose plan hits nothing is as the one inside.
func TestContractWithFaults(t *testing.T) {
	systest.Run(t, func(t *testing.T) poll.Backend {
		return poll.WithFaults(memsys.New().Backend(), injector(t, "recv#1000000=EIO; wait#1000000=EIO"))
	})
}

// TestPollerFaults has each call of a poller answer an errno once, and be made the second time.
func TestPollerFaults(t *testing.T) {
	t.Parallel()
	in := injector(t, "poller#1=EMFILE; add#1=ENOSPC; modify@fd3#1=ENOMEM; remove#1=EPERM; wait#1=EBADF; wake#1=EINVAL; wait#3=short:1")
	b := poll.WithFaults(memsys.New().Backend(), in)
	var p poll.Poller
	fds := make([]int, 2)
	for i := range fds {
		fd, err := b.Kernel.Socket(sys.IPv4, sys.UDP)
		if err != nil {
			t.Fatal(err)
		}
		fds[i] = fd
	}
	for _, c := range []struct {
		name string
		errn syscall.Errno
		call func() error
	}{
		{"poller", syscall.EMFILE, func() (err error) { p, err = b.NewPoller(); return err }},
		{"add", syscall.ENOSPC, func() error { return p.Add(fds[0], poll.Write, 7) }},
		{"modify", syscall.ENOMEM, func() error { return p.Modify(fds[0], poll.Write, 7) }},
		{"wait", syscall.EBADF, func() error { _, err := p.Wait(make([]poll.Event, 2), 0); return err }},
		{"wake", syscall.EINVAL, func() error { return p.Wake() }},
		{"remove", syscall.EPERM, func() error { return p.Remove(fds[0]) }},
	} {
		if err := c.call(); err != c.errn {
			t.Errorf("%s answers %v, want %v", c.name, err, c.errn)
		}
		if err := c.call(); err != nil {
			t.Errorf("the second %s answers %v", c.name, err)
		}
	}
	for _, fd := range fds {
		if err := p.Add(fd, poll.Write, 7); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{1, 2} {
		if n, err := p.Wait(make([]poll.Event, 4), time.Second); n != want || err != nil {
			t.Errorf("Wait answers %d, %v; want %d", n, err, want)
		}
	}
	if in.Calls()[fault.Modify] != 2 || in.Calls()[fault.Poller] != 2 {
		t.Errorf("seen calls are %v", in.Calls())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestNoFaults holds "b itself where in is nil".
func TestNoFaults(t *testing.T) {
	t.Parallel()
	b := memsys.New().Backend()
	if got := poll.WithFaults(b, nil); got.Kernel != b.Kernel {
		t.Errorf("%T", got.Kernel)
	}
}
