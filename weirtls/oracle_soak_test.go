//go:build !perf

package weirtls

// longOracles is for a soak.
const longOracles = false
