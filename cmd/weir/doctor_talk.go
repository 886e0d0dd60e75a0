package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/weirnet/weir"
)

// talk is a trial over a stream: a connection that is dialled writes to the one that is accepted, which answers when
// all is there. Both are on one loop.
type talk struct {
	unix    string     // the listener's name; empty: TCP
	at      netip.Addr // zero: IPv4
	config  weir.ConnConfig
	bytes   int                               // that are written
	write   func(c *weir.Conn) error          // nil: writes so many
	onFiles func(c *weir.Conn, f *weir.Files) // of the accepted one

	loop   *weir.Loop
	read   int
	writes int  // system calls that it took
	over   bool // and what happens now does not count
	failed error
}

// try makes the trial. It takes no longer than about trialTime.
//
//   - Errors: why not all was written, read and answered.
func (t *talk) try(ctx context.Context, e *exam) (err error) {
	if t.loop, err = e.newLoop(weir.Config{}); err != nil {
		return err
	}
	defer t.loop.Close()
	if err := t.open(); err != nil {
		return err
	}
	t.loop.AfterFunc(trialTime, func() {
		t.end(fmt.Errorf("of %d bytes to a listener of this machine %d arrived in %v", t.bytes, t.read, trialTime))
	})
	ctx, cancel := context.WithTimeoutCause(ctx, stuckTime, errors.New("the loop got stuck"))
	defer cancel()
	if err := t.loop.Run(ctx); err != nil {
		return err
	}
	return t.failed
}

// open makes the listener, and dials it.
func (t *talk) open() error {
	h := weir.ListenerHandler{
		Conn:    weir.ConnHandler{OnData: t.onData, OnFiles: t.onFiles, OnClose: t.onClose},
		OnError: func(_ *weir.Listener, err error) { t.end(err) },
	}
	dialled := weir.ConnHandler{
		OnOpen:  t.onOpen,
		OnData:  func(*weir.Conn, []byte) { t.end(nil) },
		OnClose: t.onClose,
	}
	if t.unix != "" {
		if _, err := t.loop.ListenUnix(t.unix, weir.ListenerConfig{Conn: t.config}, h); err != nil {
			return err
		}
		_, err := t.loop.DialUnix(t.unix, t.config, dialled)
		return err
	}
	if !t.at.IsValid() {
		t.at = loopback4
	}
	ln, err := t.loop.ListenTCP(netip.AddrPortFrom(t.at, 0), weir.ListenerConfig{Conn: t.config}, h)
	if err != nil {
		return err
	}
	_, err = t.loop.DialTCP(netip.AddrPort{}, ln.Addr(), t.config, dialled)
	return err
}

func (t *talk) onOpen(c *weir.Conn) {
	write := t.write
	if write == nil {
		write = func(c *weir.Conn) error { _, err := c.Write(make([]byte, t.bytes)); return err }
	}
	if err := write(c); err != nil {
		t.end(err)
	}
}

// onData counts what comes, and answers when it is all.
func (t *talk) onData(c *weir.Conn, b []byte) {
	if t.read += len(b); t.read < t.bytes {
		return
	}
	t.writes = int(t.loop.Stats().Streams.WriteCalls) // those of the other one alone, as yet
	if _, err := c.Write(make([]byte, 1)); err != nil {
		t.end(err)
	}
}

func (t *talk) onClose(_ *weir.Conn, err error) {
	if err == nil {
		err = errors.New("a connection of this machine ended early")
	}
	t.end(err)
}

// end ends the trial with what comes first: all later is the loop's end.
func (t *talk) end(err error) {
	if t.over {
		return
	}
	t.over, t.failed = true, err
	_ = t.loop.Close()
}
