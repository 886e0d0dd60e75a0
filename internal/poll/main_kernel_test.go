//go:build linux

package poll_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// TestMain checks that the tests close what they open.
func TestMain(m *testing.M) {
	if err := startRuntimePoller(); err != nil {
		panic(err)
	}
	before := descriptors()
	code := m.Run()
	if after := descriptors(); code == 0 && after != before {
		fmt.Printf("%d descriptors are open, %d were before the tests\n", after, before)
		code = 1
	}
	os.Exit(code)
}

// startRuntimePoller makes the runtime open its own descriptors, which it keeps.
func startRuntimePoller() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	return errors.Join(r.Close(), w.Close())
}

func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(list)
}
