package weirhttp

import (
	"net/netip"
	"sync"
)

// What a connection of HTTP/3 may have received that no handler has read. It begins small and grows with what is read.
const (
	firstStreamWindow = 256 << 10
	firstConnWindow   = 512 << 10
	maxStreamWindow   = 4 << 20
	maxConnWindow     = 6 << 20

	// By how much those of all, and of a source, may grow.
	maxWindows          = 512 << 20
	maxWindowsPerSource = maxWindows / 8
)

// windows adds up by how much receive windows have grown.
type windows struct {
	mu      sync.Mutex
	all     uint64                // guarded by mu
	sources map[netip.Addr]uint64 // guarded by mu
}

// grow says whether a window may grow.
func (w *windows) grow(source netip.Addr, by uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all+by > maxWindows || w.sources[source]+by > maxWindowsPerSource {
		return false
	}
	if w.sources == nil {
		w.sources = map[netip.Addr]uint64{}
	}
	w.all += by
	w.sources[source] += by
	return true
}

// give takes back what a connection's window had grown by.
func (w *windows) give(source netip.Addr, by uint64) {
	if by == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all -= by
	if w.sources[source] -= by; w.sources[source] == 0 {
		delete(w.sources, source)
	}
}
