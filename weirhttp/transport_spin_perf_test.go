//go:build unix && perf

package weirhttp

import (
	"testing"
	"time"
)

func TestPerfTransportNoSpin(t *testing.T) { transportIdles(t, 100*time.Millisecond) }
