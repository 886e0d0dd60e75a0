//go:build unix

package weirhttp

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// A destination that the system refuses (EACCES, without SO_BROADCAST) costs the request its time, and the processor
// nothing. Not parallel: what others use would count.
func TestTransportNoSpin(t *testing.T) { transportIdles(t, time.Second) }

// transportIdles fails if a request to where nothing can be sent uses that much of the processor within 1.5 s.
func transportIdles(t *testing.T, most time.Duration) {
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always})
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	before := processorTime()
	_, err := tr.RoundTrip(originRequest(t, "GET", "https://255.255.255.255/", nil).WithContext(ctx))
	used := processorTime() - before
	if err == nil {
		t.Error("RoundTrip succeeded")
	}
	if used > most {
		t.Errorf("%v of the processor's time, want at most %v", used, most)
	}
	t.Logf("%v, %v of the processor's time, %d sends", err, used, tr.Stats().UDP.SendCalls)
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
