//go:build race

package weir

// raceEnabled: the race detector allocates, so allocations are not counted under it.
const raceEnabled = true
