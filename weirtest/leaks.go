package weirtest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// CheckLeaks fails the test if, when it and its cleanups so far are over, goroutines, sockets or pollers are left
// that were not there at the call.
//
//   - Platforms: descriptors are looked at where there is a /proc.
func CheckLeaks(t testing.TB) {
	t.Helper()
	before := takeCensus()
	t.Cleanup(func() {
		if err := before.left(); err != nil {
			t.Error(err)
		}
	})
}

// census is what a process has at a moment.
type census struct {
	goroutines map[string]string // stacks by number
	files      int
}

func takeCensus() census { return census{goroutines(), openFiles()} }

// left tells what has come since and stays. What is about to end has a second for it.
func (c census) left() error {
	const tries = 50
	for try := 1; ; try++ {
		err := c.newcomers()
		if err == nil || try == tries {
			return err
		}
		time.Sleep(time.Second / tries)
	}
}

func (c census) newcomers() error {
	for id, stack := range goroutines() {
		if _, old := c.goroutines[id]; !old {
			return fmt.Errorf("a goroutine is left:\n%s", stack)
		}
	}
	if n := openFiles(); n > c.files {
		return fmt.Errorf("%d sockets and pollers are left", n-c.files)
	}
	return nil
}

func goroutines() map[string]string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := make(map[string]string)
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		all[id] = stack
	}
	return all
}

// openFiles is the number of sockets and pollers that the process has, or 0 where that is not told.
func openFiles() (n int) {
	const dir = "/proc/self/fd/"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		target, err := os.Readlink(dir + e.Name())
		if err == nil && (strings.HasPrefix(target, "socket:") || target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]") {
			n++
		}
	}
	return n
}
