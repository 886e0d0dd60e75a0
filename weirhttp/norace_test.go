//go:build !race

package weirhttp

const raceDetector = false
