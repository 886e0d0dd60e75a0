//go:build !perf

package weir

// busyShare is the part of a processor that counts as busy: a spin takes all of it, and a machine that is busy with
// something else makes all that a process does dearer.
const busyShare = 5
