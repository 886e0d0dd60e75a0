//go:build perf

package weir

// busyShare is the part of a processor that counts as busy on a machine that is at rest.
const busyShare = 20
