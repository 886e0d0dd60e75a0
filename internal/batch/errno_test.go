package batch

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// TestClasses is the table of what an errno means, in each Try.
func TestClasses(t *testing.T) {
	t.Parallel()
	tries := []Try{{}, {Again: true}, {Offloaded: true}, {Again: true, Offloaded: true}}
	reached := map[Class]bool{}
	for _, row := range []struct {
		err   error
		plain [2]Class // of a send: at the first try, and again
		asked [2]Class // the same, of one with a segment size or a traffic class
		recv  Class
	}{
		{syscall.EAGAIN, both(Wait), both(Wait), Wait},

		{syscall.ENETUNREACH, [2]Class{Stale, Lost}, [2]Class{Stale, Lost}, Stale},
		{syscall.EHOSTUNREACH, [2]Class{Stale, Lost}, [2]Class{Stale, Lost}, Stale},
		{syscall.ECONNREFUSED, [2]Class{Stale, Lost}, [2]Class{Stale, Lost}, Stale},
		{syscall.EHOSTDOWN, [2]Class{Stale, Lost}, [2]Class{Stale, Lost}, Stale},
		{syscall.EPROTO, [2]Class{Stale, Lost}, [2]Class{Stale, Lost}, Stale},
		{syscall.ENOPROTOOPT, [2]Class{Stale, Lost}, [2]Class{Stale, Lost}, Stale},
		{syscall.EOPNOTSUPP, [2]Class{Stale, Lost}, [2]Class{Stale, Lost}, Stale},
		{enonet, [2]Class{Stale, Lost}, [2]Class{Stale, Lost}, Stale},
		{syscall.EMSGSIZE, [2]Class{Stale, Size}, [2]Class{Stale, Offload}, Stale},
		{syscall.EACCES, [2]Class{Stale, Caller}, [2]Class{Stale, Caller}, Stale},

		{syscall.EIO, both(Lost), both(Offload), Lost},
		{syscall.EINVAL, both(Caller), both(Offload), Lost},

		{syscall.EDESTADDRREQ, both(Caller), both(Caller), Lost},
		{syscall.EISCONN, both(Caller), both(Caller), Lost},
		{syscall.ENOTCONN, both(Caller), both(Caller), Dead},
		{syscall.EAFNOSUPPORT, both(Caller), both(Caller), Lost},
		{syscall.EPIPE, both(Caller), both(Caller), Lost},

		{syscall.EBADF, both(Dead), both(Dead), Dead},
		{syscall.ENOTSOCK, both(Dead), both(Dead), Dead},
		{sys.ErrUnsupported, both(Dead), both(Dead), Dead},

		{syscall.EPERM, both(Lost), both(Lost), Lost},
		{syscall.ENOBUFS, both(Lost), both(Lost), Lost},
		{syscall.ENOMEM, both(Lost), both(Lost), Lost},
		{syscall.ENETDOWN, both(Lost), both(Lost), Lost},
		{syscall.EADDRNOTAVAIL, both(Lost), both(Lost), Lost},
		{syscall.ENODEV, both(Lost), both(Lost), Lost},
		{syscall.ETIMEDOUT, both(Lost), both(Lost), Lost},
		{syscall.Errno(9999), both(Lost), both(Lost), Lost},    // one that nobody has listed
		{syscall.Errno(0xffff), both(Lost), both(Lost), Lost},  // nor this
		{fmt.Errorf("no errno"), both(Lost), both(Lost), Lost}, // nor can this be
	} {
		for i, want := range slices.Concat(row.plain[:], row.asked[:]) {
			got := SendClass(row.err, tries[i])
			if got != want {
				t.Errorf("SendClass(%v, %+v) is %v, want %v", row.err, tries[i], got, want)
			}
			reached[got] = true
		}
		if got := RecvClass(row.err); got != row.recv {
			t.Errorf("RecvClass(%v) is %v, want %v", row.err, got, row.recv)
		}
	}
	for c := Class(1); c < classes; c++ {
		if !reached[c] {
			t.Errorf("no error of a send is of class %v", c)
		}
	}
}

// both is where it makes no difference whether a datagram is tried again.
func both(c Class) [2]Class { return [2]Class{c, c} }

// TestClassText: each class has a name, and no two have the same.
func TestClassText(t *testing.T) {
	t.Parallel()
	want := []string{"", "wait", "stale", "offload", "size", "lost", "caller", "dead"}
	for c := range classes {
		if got := c.String(); got != want[c] {
			t.Errorf("class %d is %q, want %q", c, got, want[c])
		}
	}
}

// TestDeviceCannot: of the errors that are Offload's, one is about trains of any size.
func TestDeviceCannot(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		syscall.EIO: true, syscall.EINVAL: false, syscall.EMSGSIZE: false, errors.ErrUnsupported: false,
	} {
		if got := DeviceCannot(err); got != want {
			t.Errorf("DeviceCannot(%v) is %v", err, got)
		}
	}
}
