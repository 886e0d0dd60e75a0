package interop

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails a run that leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
