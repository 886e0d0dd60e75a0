//go:build linux

package weir

import (
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// An idle loop makes no turn, and uses no processor, in a second of the real kernel.
func TestIdle(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a second")
	}
	l := newLoop(t, Config{})
	listen(t, l, Bound{}, nil)
	paused := listen(t, l, Bound{}, nil)
	paused.Pause()
	sendNow(t, paused, paused.LocalAddr(), 10)
	l.AfterFunc(time.Hour, func() {})
	ended := background(t, l)
	settled := make(chan struct{})
	_ = l.Post(func() { l.AfterFunc(10*time.Millisecond, func() { close(settled) }) })
	<-settled
	debug.FreeOSMemory() // what the tests before have left for the collector is not the loop's
	time.Sleep(50 * time.Millisecond)

	turns, used := l.Turn(), processorTime(t)
	time.Sleep(time.Second)
	if d := l.Turn() - turns; d != 0 {
		t.Errorf("%d turns", d)
	}
	if d := processorTime(t) - used; d > 50*time.Millisecond {
		t.Errorf("%v of the processor", d)
	} else {
		t.Logf("%v of the processor", d)
	}
	_ = l.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// processorTime is what the process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
