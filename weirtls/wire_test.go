package weirtls

import (
	"bytes"
	"testing"
)

// TestWireGivesBack has a peer send a lot, cut in the middle of a record, and stall a byte after the beginning of one.
func TestWireGivesBack(t *testing.T) {
	record := append([]byte{typeApplicationData, 3, 3, 1, 0}, make([]byte, 256)...)
	w := &wire{}
	w.put(record[:3])
	w.keep()
	w.put(append(record[3:], append(bytes.Repeat(record, 200), typeApplicationData)...))
	for buf := make([]byte, len(record)); len(w.in) > 1; {
		w.take(buf)
	}
	w.keep()
	if len(w.in) != 1 || cap(w.kept) > 4<<10 {
		t.Errorf("%d bytes are kept in %d", len(w.in), cap(w.kept))
	}
}
