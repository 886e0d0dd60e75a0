package weirhttp

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"time"
)

// restAfter is how long it rested after the last of the failures in a row.
type restAfter time.Duration

const (
	firstAcceptRest = 5 * time.Millisecond
	maxRest         = time.Second
)

// wait waits, from one call to the next twice as long.
func (r *restAfter) wait(ctx context.Context) {
	*r = min(max(2**r, restAfter(firstAcceptRest)), restAfter(maxRest))
	t := time.NewTimer(time.Duration(*r))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// isDead says whether a listener that failed so will accept nothing any more. What the system says passes by, unless it
// is about the descriptor: EMFILE, ENOBUFS and EPERM do.
func isDead(err error) bool {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return true
	}
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains([]syscall.Errno{syscall.EBADF, syscall.ENOTSOCK, syscall.EINVAL}, errno)
}
