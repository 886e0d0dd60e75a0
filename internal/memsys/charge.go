package memsys

import "math/bits"

// What Linux charges a receive buffer for a datagram on the loopback, read from SO_MEMINFO for every
// size on 6.18 (amd64): the sk_buff, and a head that is the small one of 576 bytes or a power of two
// and holds the protocol headers and the shared info besides the payload. Above the largest head the
// rest lies in pages and counts as it is.
const (
	skbBytes       = 256
	headOverhead4  = 379
	headOverhead6  = 392
	smallHeadBytes = 576
	largeHeadBytes = 16384
	pagedOverhead  = 832
)

func truesize(payload int, ipv4 bool) int {
	head := payload + headOverhead6
	if ipv4 {
		head = payload + headOverhead4
	}
	switch {
	case head <= smallHeadBytes:
		return skbBytes + smallHeadBytes
	case head < largeHeadBytes:
		return skbBytes + 1<<bits.Len(uint(head-1))
	default:
		return payload + pagedOverhead
	}
}
