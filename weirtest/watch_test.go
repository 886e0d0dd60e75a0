package weirtest

import (
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// makers is a kernel whose calls make descriptors, or fail.
type makers struct {
	sys.Kernel
	err error
}

func (m *makers) Socket(sys.Family, sys.Kind) (int, error) { return 3, m.err }
func (m *makers) Duplicate(int) (int, error)               { return 4, m.err }
func (m *makers) Close(int) error                          { return m.err }

func (m *makers) Accept(int) (int, netip.AddrPort, error) {
	return 5, loopback, m.err
}

func (m *makers) ReadFiles(_ int, b []byte, f *sys.Files) (int, error) {
	if f.FDs = f.FDs[:0]; m.err != nil {
		return 0, m.err
	}
	f.FDs = append(f.FDs, 6, 7)
	return len(b), nil
}

// TestWatchCounts has each call that makes descriptors: a sweep that does not count one finds no leak of it.
func TestWatchCounts(t *testing.T) {
	t.Parallel()
	bare := &makers{err: syscall.EMFILE}
	w := newWatch(poll.Backend{Kernel: bare})
	f := sys.NewFiles(2)
	makeAll := func() {
		_, _ = w.Socket(sys.UnixFamily, sys.UnixStream)
		_, _ = w.Duplicate(3)
		if fd, peer, err := w.Accept(3); err == nil && (fd != 5 || !peer.IsValid()) {
			t.Errorf("accepts %d from %v", fd, peer)
		}
		if n, err := w.ReadFiles(5, make([]byte, 8), f); err == nil && (n != 8 || len(f.FDs) != 2) {
			t.Errorf("reads %d with %v", n, f.FDs)
		}
	}
	makeAll()
	if got := w.descriptors(); len(got) != 0 {
		t.Errorf("calls that fail make %v", got)
	}
	bare.err = nil
	makeAll()
	if got, want := w.descriptors(), []int{3, 4, 5, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("has %v, want %v", got, want)
	}
	for fd := 3; fd <= 7; fd++ {
		_ = w.Close(fd)
	}
	if n, _ := w.left(); n != 0 {
		t.Errorf("%v left", w.descriptors())
	}
}
