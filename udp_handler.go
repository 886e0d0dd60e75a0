package weir

import (
	"net/netip"
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

	// OnError is called for what went wrong without ending the socket: a datagram that was accepted and
	// could not be sent (OpError.Addr tells for whom), or a report that the kernel had for the socket, such
	// as ECONNREFUSED of a connected socket whose peer is gone. A peer can cause many: count them rather than
	// log each. More than 16 that wait are counted in Stats only.
	OnError func(u *UDP, err error)

	// OnClose is the last call: nil after Close or Stop, ErrClosed when the loop ended, else the error that
	// ended the socket.
	OnClose func(u *UDP, err error)
}

// Datagram is one message received.
type Datagram struct {
	Payload   []byte         // may be empty: a datagram without payload is one
	Source    netip.AddrPort // the sender; IPv4 is IPv4 also through an IPv6 socket, and zones are numbers
	Truncated bool           // it was longer than UDPConfig.MaxDatagramBytes; the rest is gone
}
