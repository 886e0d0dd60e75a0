//go:build !unix

package weirtest

import "time"

// processorTime is not told here: a loop that spins is found by its calls.
func processorTime() time.Duration { return 0 }
