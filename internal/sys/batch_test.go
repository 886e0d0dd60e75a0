package sys

import "testing"

func TestRecvBatchSlots(t *testing.T) {
	t.Parallel()
	b := NewRecvBatch(3, 8)
	for i := range b.Msgs {
		slot := b.Slot(i)
		if len(slot) != 8 || cap(slot) != 8 {
			t.Errorf("slot %d: length %d, capacity %d", i, len(slot), cap(slot))
		}
		for j := range slot {
			slot[j] = byte(i + 1)
		}
	}
	for i := range b.Msgs {
		for _, v := range b.Slot(i) {
			if v != byte(i+1) {
				t.Fatalf("slot %d was written through another", i)
			}
		}
	}
}
