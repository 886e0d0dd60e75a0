package weirtest

import (
	"fmt"

	"github.com/weirnet/weir"
)

// StreamBalance is what a program knows of the bytes of its connections beside what the statistics say, for all of a
// loop's. Those of files that SendFile was given are in no count of what is queued, so it is for loops without.
type StreamBalance struct {
	Accepted  int              // bytes that Write, Writev, Enqueue, WriteFiles and ConnSenders took
	Delivered int              // bytes that OnData was called with
	Stats     weir.StreamStats // Loop.Stats().Streams
}

// Check tells whether what was accepted was written, or is counted as not written, and what was read delivered, or is
// counted as not delivered. That holds whatever fails, where no ConnSender has bytes that the loop has not taken over.
func (b StreamBalance) Check() error {
	s := b.Stats
	if out := s.WrittenBytes + s.UnsentBytes + uint64(s.QueuedBytes); uint64(b.Accepted) != out {
		return fmt.Errorf("%d bytes accepted, but %d accounted for: %d written, %d unsent, %d queued",
			b.Accepted, out, s.WrittenBytes, s.UnsentBytes, s.QueuedBytes)
	}
	if out := uint64(b.Delivered) + s.Discarded; s.ReadBytes != out {
		return fmt.Errorf("%d bytes read, but %d accounted for: %d delivered, %d discarded",
			s.ReadBytes, out, b.Delivered, s.Discarded)
	}
	return nil
}

// CheckClosed is Check for connections of which both ends are on the loop, and that were closed without an error: it
// tells also whether all that was written was read.
func (b StreamBalance) CheckClosed() error {
	if err := b.Check(); err != nil {
		return err
	}
	if s := b.Stats; s.WrittenBytes != s.ReadBytes {
		return fmt.Errorf("%d bytes written, but %d read", s.WrittenBytes, s.ReadBytes)
	}
	return nil
}
