package sys

import (
	"net/netip"
	"syscall"
)

// Message is one datagram on its way through a Kernel.
type Message struct {
	Buf   []byte         // receive: the payload, in the slot; send: the payload
	Addr  netip.AddrPort // receive: the source; send: the destination, or zero for the connected peer
	Flags Flags          // receive only

	Control Control

	// Raw is control messages in the kernel's own form. Received, all of them, also those that Control tells; they
	// are valid as long as Buf. Sent, they go in front of what Control says; there is room for MaxRawBytes, padded if
	// more follows. A kernel that is not the system's has none, and sends none.
	Raw []byte
}

// MaxRawBytes is the most of Message.Raw that can be sent.
const MaxRawBytes = 128

// Control is what goes with a datagram beside its payload and its address. The zero Control says nothing.
type Control struct {
	// Local is, received, the destination in the header; sent, the address to send from. An IPv6 socket
	// knows IPv4 addresses as mapped.
	Local netip.Addr

	// NotOwn says, where the kernel tells, that Local is none of this machine's addresses but a group's or for
	// broadcast: nothing can be sent from it. Receive only, of an IPv4 socket.
	NotOwn bool

	// Interface is the number of the interface that it came by, or is to leave by.
	Interface uint32

	// TrafficClass is the byte of that name (IPv4: TOS), with ECN in its lowest two bits; sent, it stands
	// for the socket's.
	TrafficClass    uint8
	HasTrafficClass bool

	// Segment, where it is not 0, says that the payload is many datagrams of that many bytes, but for the
	// last, which may be shorter.
	Segment uint16

	// Time is when the kernel received it, in nanoseconds since 1970, or 0; receive only.
	Time int64
}

// Flags tell what the kernel cut.
type Flags uint8

const (
	Truncated  Flags = 1 << iota // the datagram was larger than its slot (MSG_TRUNC)
	ControlCut                   // there was no room for all control messages (MSG_CTRUNC)
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

// Report is an entry of a socket's error queue.
type Report struct {
	Errno    syscall.Errno
	Origin   Origin
	Peer     netip.AddrPort // the destination of the datagram that it is about; OriginLocal over IPv4 has the connected peer's port
	Offender netip.Addr     // who sent the ICMP message; the zero Addr where nobody did
	Info     uint32         // with EMSGSIZE: the MTU
}

// Origin tells where a Report comes from.
type Origin uint8

const (
	OriginOther Origin = iota
	OriginLocal        // this machine, in the call that sent; the call has answered the same errno
	OriginICMP         // an ICMP or ICMPv6 message
)

// ReportBatch is room for reports, and what a Kernel needs to take them in one call.
type ReportBatch struct {
	Reports []Report
	native  reportNative
}

// NewReportBatch makes room for n reports.
func NewReportBatch(n int) *ReportBatch {
	b := &ReportBatch{Reports: make([]Report, n)}
	b.native.init(n)
	return b
}
