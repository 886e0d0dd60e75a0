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

// TestWireStepEnds: a message in a thousand pieces does not hold the loop for one step.
func TestWireStepEnds(t *testing.T) {
	t.Parallel()
	waits := 0
	w := &wire{await: func() bool { waits++; return waits < 1000 }}
	for range 1000 {
		w.put([]byte{22, 3, 1, 0, 1, 'x'})
		w.keep()
	}
	p := make([]byte, 600)
	for len(w.in) > 0 {
		if _, err := w.Read(p); err != nil {
			t.Fatal(err)
		}
	}
	if least := 1000 / stepRecords; waits < least || waits > 2*least {
		t.Errorf("it gave way %d times, want %d or so", waits, least)
	}
}
