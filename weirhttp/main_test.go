package weirhttp

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirnet/weir/internal/sys/systest"
)

// TestMain fails a run that leaves a goroutine or an open descriptor behind.
func TestMain(m *testing.M) {
	if err := systest.RefuseIfAsked(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if r, w, err := os.Pipe(); err == nil { // has the runtime open its own poller, which stays
		_, _ = r.Close(), w.Close()
	}
	before := openFiles()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if after := openFiles(); after > before {
			fmt.Fprintf(os.Stderr, "%d descriptors open before the tests, %d after\n", before, after)
			code = 1
		}
	}
	os.Exit(code)
}

// openFiles is the number of sockets and pollers that the process has open, or 0 where that is not told.
func openFiles() (n int) {
	const dir = "/proc/self/fd/"
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		target, err := os.Readlink(dir + e.Name())
		if err == nil && (strings.HasPrefix(target, "socket:") || target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]") {
			n++
		}
	}
	return n
}
