//go:build race

package dgram

const raceEnabled = true // a sync.Pool drops some of what it is given
