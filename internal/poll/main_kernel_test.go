//go:build linux

package poll_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain checks that the tests close what they open.
func TestMain(m *testing.M) {
	before := descriptors()
	code := m.Run()
	if after := descriptors(); code == 0 && after != before {
		fmt.Printf("%d descriptors are open, %d were before the tests\n", after, before)
		code = 1
	}
	os.Exit(code)
}

func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(list)
}
