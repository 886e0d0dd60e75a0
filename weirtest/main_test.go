package weirtest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if r, w, err := os.Pipe(); err == nil { // has the runtime open its own poller, which stays
		_, _ = r.Close(), w.Close()
	}
	goleak.VerifyTestMain(m)
}
