package weirtest

import (
	"fmt"

	"github.com/weirnet/weir"
)

// Balance is what a program knows of its datagrams beside what the statistics say, for one UDP socket or a group.
type Balance struct {
	Accepted  int           // calls of Send that answered nil
	Delivered int           // calls of OnDatagram
	Dropped   int           // lost by a fault: Loop.Faults().Dropped()
	Stats     weir.UDPStats // the socket's, or the sum: Loop.Stats().UDP, which has the closed ones, too
}

// Check tells whether what was accepted was sent, or is counted as not sent, and what was received delivered, or is
// counted as not delivered. That holds whatever fails.
func (b Balance) Check() error {
	s := b.Stats
	if sent := s.Sent + s.SendLost + s.Unsent + uint64(s.Queued); uint64(b.Accepted) != sent {
		return fmt.Errorf("%d datagrams accepted, but %d accounted for: %d sent, %d lost, %d unsent, %d queued",
			b.Accepted, sent, s.Sent, s.SendLost, s.Unsent, s.Queued)
	}
	got := s.Received + s.Injected
	if out := uint64(b.Delivered) + s.Discarded + s.Exported + uint64(s.Undelivered); got != out {
		return fmt.Errorf("%d datagrams received and %d injected, but %d accounted for: %d delivered, %d discarded, %d exported, %d not delivered yet",
			s.Received, s.Injected, out, b.Delivered, s.Discarded, s.Exported, s.Undelivered)
	}
	return nil
}

// CheckClosed is Check for a group of sockets that send to each other alone, all of which lived until what they
// sent had arrived: it tells also whether what was sent was received, or is counted as dropped. Where the kernel may
// drop, they need UDPConfig.NoGRO, as it counts a train as one.
func (b Balance) CheckClosed() error {
	if err := b.Check(); err != nil {
		return err
	}
	s := b.Stats
	if got := s.Received + s.KernelDropped + uint64(b.Dropped); s.Sent != got {
		return fmt.Errorf("%d datagrams sent, but %d accounted for: %d received, %d dropped by the kernel, %d dropped by a fault",
			s.Sent, got, s.Received, s.KernelDropped, b.Dropped)
	}
	return nil
}
