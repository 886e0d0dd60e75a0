package dgram

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirnet/weir/internal/sys/systest"
)

// TestMain puts the program under a filter where a test asks for one by the environment. It fails a run that leaves a
// goroutine or an open socket behind.
func TestMain(m *testing.M) {
	if err := systest.RefuseIfAsked(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if r, w, err := os.Pipe(); err == nil { // has the runtime open its own poller, which stays
		_, _ = r.Close(), w.Close()
	}
	before := openSockets()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if after := openSockets(); after > before {
			fmt.Fprintf(os.Stderr, "%d sockets open before the tests, %d after\n", before, after)
			code = 1
		}
	}
	os.Exit(code)
}

// openSockets is the number of sockets that the process has, or 0 where that is not told.
func openSockets() (n int) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n
}
