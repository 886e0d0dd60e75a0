package weirprom

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails a run that leaves a goroutine behind; the kernel of these tests is in memory.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
