//go:build perf

package weirtest

const soaking = true
