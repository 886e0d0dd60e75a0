//go:build !linux

package weir

const limitedEnv = "WEIR_TEST_LIMITED"

func runLimited(string) error { return nil }
