//go:build !perf

package weirtest

// soaking has sweeps take their time: see make soak.
const soaking = false
