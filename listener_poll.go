package weir

import (
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// ready is called with what the poller saw.
func (ln *Listener) ready(r poll.Ready) {
	if r&(poll.Failed|poll.HungUp) != 0 && !ln.accepting() {
		ln.leavePoller() // neither can be masked
		return
	}
	if ln.accepting() {
		ln.loop.becameReady(ln.source)
	}
}

// leavePoller takes the listener out of the poller until it accepts again.
func (ln *Listener) leavePoller() {
	if !ln.outside {
		ln.outside = ln.loop.poller.Remove(ln.fd) == nil
	}
}

func (ln *Listener) changed() {
	ln.loop.turnEnd.add(ln)
}

// endTurn sets the interest, then runs one callback that was put off.
func (ln *Listener) endTurn() (more bool) {
	ln.syncInterest()
	switch {
	case ln.errors.len() > 0:
		err := ln.errors.pop()
		if ln.handler.OnError != nil {
			ln.handler.OnError(ln, err)
		}
	case ln.closeDue:
		ln.closeDue = false
		if ln.handler.OnClose != nil {
			ln.handler.OnClose(ln, ln.closeErr)
		}
	}
	return ln.errors.len() > 0 || ln.closeDue
}

// syncInterest tells the poller what changed since it was last told.
func (ln *Listener) syncInterest() {
	if ln.fd < 0 {
		return
	}
	var want poll.Interest
	if ln.accepting() {
		want = poll.Read
	}
	var err error
	switch {
	case ln.outside && want != 0:
		err = ln.loop.poller.Add(ln.fd, want, ln.token)
		ln.outside = err != nil
	case want == ln.interest || ln.outside:
	default:
		err = ln.loop.poller.Modify(ln.fd, want, ln.token)
	}
	if err != nil {
		ln.close(ln.opError("poll", err))
		return
	}
	ln.interest = want
}

// String names the listener in texts: its network and its address or name.
func (ln *Listener) String() string { return ln.name() }

func (ln *Listener) inTurnEnd() *bool { return &ln.atTurnEnd }

func (ln *Listener) network() string {
	if ln.family == sys.UnixFamily {
		return "unix"
	}
	return "tcp"
}

func (ln *Listener) name() string {
	if ln.family == sys.UnixFamily {
		return "listener unix " + ln.unixName
	}
	return "listener tcp " + ln.local.String()
}

func (ln *Listener) opError(op string, err error) error {
	return &OpError{Op: op, Net: ln.network(), Source: ln.local, SourceName: ln.unixName, Err: err}
}

// Close closes the listener at once, and its port is free when Close returns. Connections that were not accepted are
// reset by the kernel: Stop accepts them first. OnClose follows. The connections that it has accepted live on.
//
//   - Errors: ErrClosed when it is closed already.
func (ln *Listener) Close() error {
	if ln.fd < 0 {
		return ErrClosed
	}
	ln.close(nil)
	return nil
}

// Stop is Close, once those who wait in the backlog are accepted.
func (ln *Listener) Stop() { ln.drain(false) }

// stop is for the end of the loop: who is still accepted is told to finish at once.
func (ln *Listener) stop() { ln.drain(true) }

func (ln *Listener) drain(conns bool) {
	if ln.fd < 0 {
		return
	}
	if !ln.stopping || conns {
		ln.waiting = ln.backlog + 1 // the kernel holds one more (sk_acceptq_is_full)
	}
	ln.stopping = true
	ln.stopConns = ln.stopConns || conns
	ln.endRest()
	ln.changed()
	ln.loop.becameReady(ln.source)
}

func (ln *Listener) close(why error) {
	if ln.fd < 0 {
		return
	}
	l := ln.loop
	ln.endRest()
	l.table.remove(ln.token)
	l.ring.Remove(ln.source)
	if !ln.outside {
		_ = l.poller.Remove(ln.fd) // before close: a duplicate of the descriptor would keep it registered
	}
	ln.removePath()
	fd := ln.fd
	ln.fd = -1
	_ = l.kernel.Close(fd)
	l.descriptorFreed()
	ln.closeErr, ln.closeDue = why, true
	l.turnEnd.add(ln)
}

// removePath removes the path that the listener has made.
func (ln *Listener) removePath() {
	if ln.unlink {
		_ = ln.loop.kernel.UnlinkUnix(ln.unixName) // who has removed it before was free to
	}
}
