//go:build perf

package weir

import (
	"testing"
	"time"
)

// TestSoakStreamOracle is TestStreamOracle for a minute.
func TestSoakStreamOracle(t *testing.T) { runOracle(t, time.Minute) }
