//go:build perf

package weirhttp

import "testing"

// The same as TestShutdownDelivers, a thousand times at once.
func TestSoakShutdown(t *testing.T) { shutdownDelivers(t, 1000) }
