//go:build linux && perf

package lab

import (
	"path/filepath"
	"strconv"
	"testing"
)

// TestPerfIdle holds "10,000 idle connections: user-space memory at most 1 KiB each beyond the loop's own (heap and
// RSS)", beside net and gnet.
func TestPerfIdle(t *testing.T) {
	const conns, most = 10_000, 1024
	dir := build(t)
	for _, server := range []string{"weirecho", "gnetecho", "stdecho"} {
		s := start(t, -1, filepath.Join(dir, server))
		before := s.ask("gc")
		load := start(t, -1, filepath.Join(dir, "echoload"), "-addr", s.first, "-idle", "-conns", strconv.Itoa(conns))
		after := s.ask("gc")
		rss, heap := (after[1]-before[1])/conns, (after[2]-before[2])/conns
		t.Logf("%s: heap and stacks %.0f bytes a connection, resident %.0f", server, heap, rss)
		load.stop()
		s.stop()
		if server == "weirecho" && (rss > most || heap > most) {
			t.Errorf("more than %d bytes", most)
		}
	}
}
