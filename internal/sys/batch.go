package sys

import "net/netip"

// Message is one datagram on its way through a Kernel.
type Message struct {
	Buf   []byte         // receive: the payload, in the slot; send: the payload
	Addr  netip.AddrPort // receive: the source; send: the destination, or zero for the connected peer
	Flags Flags          // receive only
}

// Flags tell what the kernel cut.
type Flags uint8

const (
	Truncated        Flags = 1 << iota // the datagram was larger than its slot (MSG_TRUNC)
	ControlTruncated                   // control messages were lost (MSG_CTRUNC); the payload is whole
)

// RecvBatch is a set of receive slots and what a Kernel needs to fill them in one call. Messages point
// into the slots and are valid until the next Recv with the same batch.
type RecvBatch struct {
	Msgs   []Message
	slots  [][]byte
	native recvNative
}

// NewRecvBatch makes n slots of slotBytes each. They are one allocation that is never touched where no
// datagram was written, so that its resident size follows the traffic, not the limit.
func NewRecvBatch(n, slotBytes int) *RecvBatch {
	mem := make([]byte, n*slotBytes)
	b := &RecvBatch{Msgs: make([]Message, n), slots: make([][]byte, n)}
	for i := range b.slots {
		b.slots[i] = mem[i*slotBytes : (i+1)*slotBytes : (i+1)*slotBytes]
	}
	b.native.init(b.slots)
	return b
}

// Slot is the memory that Recv may fill for message i; kernels that are not the real one use it.
func (b *RecvBatch) Slot(i int) []byte { return b.slots[i] }

// SendBatch is a set of messages to send. The caller sets Buf and Addr of those it sends and keeps them
// unchanged until Send returns.
type SendBatch struct {
	Msgs   []Message
	native sendNative
}

// NewSendBatch makes a batch of up to n messages.
func NewSendBatch(n int) *SendBatch {
	b := &SendBatch{Msgs: make([]Message, n)}
	b.native.init(n)
	return b
}
