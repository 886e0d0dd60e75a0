package stream

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// TestClasses is the table of what an errno means to a read, a write and an accept.
func TestClasses(t *testing.T) {
	t.Parallel()
	reached := map[Class]bool{}
	for _, row := range []struct {
		err                 error
		read, write, accept Class
	}{
		{syscall.EAGAIN, Wait, Wait, Wait},
		{syscall.ENOBUFS, Memory, Memory, Memory},
		{syscall.ENOMEM, Memory, Memory, Memory},
		{syscall.ETOOMANYREFS, Gone, Memory, Next},

		{syscall.ECONNRESET, Gone, Gone, Next},
		{syscall.EPIPE, Gone, Gone, Next},
		{syscall.ECONNABORTED, Gone, Gone, Next},
		{syscall.ETIMEDOUT, Gone, Gone, Next},
		{syscall.ENOTCONN, Gone, Gone, Next},
		{syscall.ECONNREFUSED, Gone, Gone, Next},

		{syscall.ENETDOWN, Gone, Gone, Next},
		{syscall.ENETUNREACH, Gone, Gone, Next},
		{syscall.EHOSTUNREACH, Gone, Gone, Next},
		{syscall.EHOSTDOWN, Gone, Gone, Next},
		{enonet, Gone, Gone, Next},
		{syscall.ENOPROTOOPT, Gone, Gone, Next},
		{syscall.EPROTO, Gone, Gone, Next},
		{syscall.EOPNOTSUPP, Gone, Gone, Next},
		{syscall.EPERM, Gone, Gone, Next},

		{syscall.EMFILE, Gone, Gone, Full},
		{syscall.ENFILE, Gone, Gone, Full},

		{syscall.EBADF, Gone, Gone, Dead},
		{syscall.ENOTSOCK, Gone, Gone, Dead},
		{syscall.EINVAL, Gone, Gone, Dead},
		{sys.ErrUnsupported, Gone, Gone, Dead},

		{syscall.Errno(9999), Gone, Gone, Next},    // one that nobody has listed
		{fmt.Errorf("no errno"), Gone, Gone, Next}, // nor can this be
	} {
		for _, c := range []struct {
			call      string
			got, want Class
		}{
			{"ReadClass", ReadClass(row.err), row.read},
			{"WriteClass", WriteClass(row.err), row.write},
			{"AcceptClass", AcceptClass(row.err), row.accept},
		} {
			if c.got != c.want {
				t.Errorf("%s(%v) is %v, want %v", c.call, row.err, c.got, c.want)
			}
			reached[c.got] = true
		}
	}
	for c := Class(1); c < classes; c++ {
		if !reached[c] {
			t.Errorf("no error is of class %v", c)
		}
	}
}

// TestClassText: each class has a name, and no two have the same.
func TestClassText(t *testing.T) {
	t.Parallel()
	want := []string{"", "wait", "memory", "gone", "next", "full", "dead"}
	for c := range classes {
		if got := c.String(); got != want[c] {
			t.Errorf("class %d is %q, want %q", c, got, want[c])
		}
	}
}
