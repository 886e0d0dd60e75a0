package batch

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

func TestClasses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err        error
		send, recv Class
	}{
		{syscall.EAGAIN, Wait, Wait},
		{syscall.EWOULDBLOCK, Wait, Wait},
		{syscall.EMSGSIZE, Size, Stale},

		{syscall.EPERM, Lost, Lost},
		{syscall.ENOBUFS, Lost, Lost},
		{syscall.ENOMEM, Lost, Lost},
		{syscall.ENETUNREACH, Stale, Stale},
		{syscall.EHOSTUNREACH, Stale, Stale},
		{syscall.ECONNREFUSED, Stale, Stale},
		{syscall.ENETDOWN, Lost, Lost},
		{syscall.EHOSTDOWN, Stale, Stale},
		{syscall.EADDRNOTAVAIL, Lost, Lost},
		{syscall.ENODEV, Lost, Lost},
		{syscall.EPROTO, Stale, Stale},
		{syscall.ENOPROTOOPT, Stale, Stale},
		{syscall.EOPNOTSUPP, Stale, Stale},
		{syscall.EIO, Lost, Lost},
		{syscall.ETIMEDOUT, Lost, Lost},
		{syscall.Errno(9999), Lost, Lost},    // one that nobody has listed
		{fmt.Errorf("no errno"), Lost, Lost}, // nor is this
		{syscall.Errno(0xffff), Lost, Lost},

		{syscall.EACCES, Caller, Lost},
		{syscall.EDESTADDRREQ, Caller, Lost},
		{syscall.EISCONN, Caller, Lost},
		{syscall.ENOTCONN, Caller, Dead},
		{syscall.EAFNOSUPPORT, Caller, Lost},
		{syscall.EINVAL, Caller, Lost},
		{syscall.EPIPE, Caller, Lost},

		{syscall.EBADF, Dead, Dead},
		{syscall.ENOTSOCK, Dead, Dead},
		{sys.ErrUnsupported, Dead, Dead},
	} {
		if got := SendClass(row.err); got != row.send {
			t.Errorf("SendClass(%v) is %v, want %v", row.err, got, row.send)
		}
		if got := RecvClass(row.err); got != row.recv {
			t.Errorf("RecvClass(%v) is %v, want %v", row.err, got, row.recv)
		}
	}
}

func TestClassText(t *testing.T) {
	t.Parallel()
	for class, want := range map[Class]string{Wait: "wait", Stale: "stale", Size: "size", Lost: "lost", Caller: "caller", Dead: "dead", 0: ""} {
		if got := class.String(); got != want {
			t.Errorf("class %d is %q, want %q", class, got, want)
		}
	}
}
