//go:build !linux

package weir

const sharerEnv = "WEIR_TEST_SHARER"

func runSharer(string) error { return nil }
