//go:build race

package weirhttp

const raceDetector = true
