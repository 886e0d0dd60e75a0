//go:build linux && perf

package weirhttp

import (
	"testing"
	"time"
)

func TestPerfSmallPath(t *testing.T) { smallPath(t, time.Second) }
