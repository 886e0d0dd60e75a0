package weir

import (
	"net/netip"
	"time"
)

// UDPHandler is what a UDP socket calls. Functions left nil do nothing.
type UDPHandler struct {
	// OnDatagram is called for each datagram. d and its payload are lent until it returns; the payload may
	// be written to.
	OnDatagram func(u *UDP, d *Datagram)

	// OnDrain is called when, after a Send answered ErrWouldBlock, the queue is half empty. A relay that must
	// not lose the datagram which was refused copies it, pauses the socket that it came from, and in OnDrain
	// sends the copy before it resumes that; if the copy is refused, OnDrain comes again.
	OnDrain func(u *UDP)

	// OnError is called for what went wrong without ending the socket: an *OpError for a datagram that was
	// accepted and could not be sent (Addr tells for whom), or for an error that the kernel had for the
	// socket, such as ECONNREFUSED of a connected socket whose peer is gone. A peer can cause many: there are
	// at most 100 a second, after 16 at once, and Stats counts all. With UDPConfig.Reports it is an *ICMPError,
	// once a turn for each peer and errno: as long as datagrams go to a dead port it comes again and again, so
	// remember the peer.
	OnError func(u *UDP, err error)

	// OnClose is the last call: nil after Close or Stop, ErrClosed when the loop ended, else the error that
	// ended the socket.
	OnClose func(u *UDP, err error)
}

// Datagram is one message received. Local and what follows are there where the UDPConfig asks for them.
type Datagram struct {
	Payload   []byte         // may be empty: a datagram without payload is one
	Source    netip.AddrPort // the sender; IPv4 is IPv4 also through an IPv6 socket, and zones are numbers
	Truncated bool           // it was longer than UDPConfig.MaxDatagramBytes; the rest is gone

	Local     netip.Addr // ReceiveLocal: the address that it was sent to; it may be a group, or a broadcast address
	Interface int        // ReceiveLocal: the number of the interface that it came by
	ECN       ECN        // ReceiveECN
	Time      time.Time  // ReceiveTime: when the kernel received it

	notOwn bool // the kernel says that Local is none of this machine's addresses
}

// ECN is the congestion mark of a datagram (RFC 3168 section 5).
type ECN uint8

// The marks of RFC 3168: NotECT says that the endpoints do without ECN, ECT0 and ECT1 that they can, and CE
// that a router on the way was congested.
const (
	NotECT ECN = 0
	ECT1   ECN = 1
	ECT0   ECN = 2
	CE     ECN = 3
)
