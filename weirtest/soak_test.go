//go:build !perf

package weirtest

// soaking has sweeps try each errno, which takes minutes: see make soak.
const soaking = false
