//go:build !perf || !linux

package weir

const bulkEnv = "WEIR_TEST_BULK"

func runBulk(string) error { return nil }
