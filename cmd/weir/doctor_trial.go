package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/weirnet/weir"
)

const (
	trialTime = 500 * time.Millisecond // for what loopback does in microseconds, on a busy machine
	stuckTime = 2 * time.Second        // when the loop's own timers have failed
	lookEvery = 2 * time.Millisecond
)

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// trial is an exchange over loopback: what one socket sends to another, both on one loop.
type trial struct {
	config   weir.Config
	from, to weir.UDPConfig
	at       netip.Addr // zero: IPv4
	sizes    []int      // of the datagrams
	options  weir.SendOptions
	paused   bool                  // the receiver does not read
	closed   bool                  // the receiver is closed before anything is sent
	enough   func(o *outcome) bool // nil: when all has arrived
	during   func(loop *weir.Loop) // nil, or what else is done
}

// outcome is what a trial has come to.
type outcome struct {
	arrived  int
	last     weir.Datagram    // without payload
	sender   weir.UDPStats    // at the end, while the socket was open
	receiver weir.UDPStats    // likewise
	lost     map[string]error // fast paths that the loop has given up, and why
	errs     []error          // what OnError was told
}

// equal and various are the sizes of n datagrams that can go as one train, and of n that cannot.
func equal(n, bytes int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = bytes
	}
	return sizes
}

func various(n int) []int {
	sizes := equal(n, 100)
	for i := range sizes {
		sizes[i] += i // each longer than the one before, which a train cannot have
	}
	return sizes
}

// try makes a trial. It takes no longer than about trialTime; that not all has arrived then is no error.
func (e *exam) try(ctx context.Context, t trial) (*outcome, error) {
	o := &outcome{lost: map[string]error{}}
	t.config.Logger = slog.New(pathLog{o.lost})
	loop, err := e.newLoop(t.config)
	if err != nil {
		return o, err
	}
	defer loop.Close()
	from, to, err := t.open(loop, o)
	if err != nil {
		return o, err
	}
	look := func() { o.sender, o.receiver = from.Stats(), to.Stats() }
	ending := false
	finish := func() { // a turn later, so that the turn's end has told what it found out
		if !ending {
			ending = true
			loop.NextTurn(func() { look(); _ = loop.Close() })
		}
	}
	if t.enough == nil {
		t.enough = func(o *outcome) bool { return o.arrived == len(t.sizes) }
	}
	loop.Every(lookEvery, func() {
		if look(); t.enough(o) {
			finish()
		}
	})
	loop.AfterFunc(trialTime, finish)
	if t.during != nil {
		t.during(loop)
	}
	return o, e.exchange(ctx, loop, &t, from, to)
}

// open makes the two sockets.
func (t *trial) open(loop *weir.Loop, o *outcome) (from, to *weir.UDP, err error) {
	if !t.at.IsValid() {
		t.at = loopback4
	}
	heard := func(_ *weir.UDP, err error) { o.errs = append(o.errs, err) }
	somewhere := netip.AddrPortFrom(t.at, 0)
	to, err = loop.ListenUDP(somewhere, t.to, weir.UDPHandler{
		OnDatagram: func(_ *weir.UDP, d *weir.Datagram) {
			o.arrived++
			o.last = *d
			o.last.Payload = nil // it is lent
		},
		OnError: heard,
	})
	if err != nil {
		return nil, nil, err
	}
	from, err = loop.ListenUDP(somewhere, t.from, weir.UDPHandler{OnError: heard})
	return from, to, err
}

// exchange sends, and runs the loop to its end.
func (e *exam) exchange(ctx context.Context, loop *weir.Loop, t *trial, from, to *weir.UDP) error {
	if t.paused {
		to.Pause()
	}
	if t.closed {
		_ = to.Close()
	}
	for _, n := range t.sizes {
		if err := from.SendWith(make([]byte, n), to.LocalAddr(), t.options); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stuckTime, errors.New("the loop got stuck"))
	defer cancel()
	return loop.Run(ctx)
}

// whyNot is why less arrived than was sent.
func (o *outcome) whyNot(sent int) error {
	switch {
	case o.arrived >= sent:
		return nil
	case len(o.errs) > 0:
		return o.errs[0]
	default:
		return fmt.Errorf("of %d datagrams to a socket of this machine %d arrived in %v", sent, o.arrived, trialTime)
	}
}

// pathLog hears from the log which fast paths a loop has given up.
type pathLog struct{ lost map[string]error }

func (pathLog) Enabled(context.Context, slog.Level) bool { return true }
func (h pathLog) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h pathLog) WithGroup(string) slog.Handler          { return h }

func (h pathLog) Handle(_ context.Context, r slog.Record) error {
	path, reason := "", error(nil)
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "path":
			path = a.Value.String()
		case "reason":
			reason, _ = a.Value.Any().(error)
		}
		return true
	})
	if path != "" && reason != nil {
		h.lost[path] = reason
	}
	return nil
}

// isICMP finds the first report of the network among errors.
func isICMP(errs []error) (report *weir.ICMPError, found bool) {
	for _, err := range errs {
		if errors.As(err, &report) {
			return report, true
		}
	}
	return nil, false
}
