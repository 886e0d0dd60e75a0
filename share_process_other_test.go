//go:build !linux

package weir

const sharerEnv = ""

func runSharer() error { return nil }
