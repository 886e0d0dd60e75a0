package weir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/weirnet/weir/internal/sys"
)

func modelContext() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), 10*time.Second, fmt.Errorf("nothing ended the loop"))
}

func loopbackAny() netip.AddrPort { return netip.AddrPort{} }

func (e *modelEnd) sendFile() {
	n := e.size()
	if e.bySender {
		return
	}
	at, called := e.taken%modelPeriod, false
	err := e.conn.SendFile(e.m.file, int64(at), int64(n), func(error) {
		e.m.note("%s file done", e.name)
		if called || e.closes > 0 {
			e.m.fail("%s: done was called before %v, %d OnClose", e.name, called, e.closes)
		}
		called = true
		e.filesDue--
		e.callback("done", false, 2)
	})
	took := n
	if err == nil {
		e.m.files = true
		e.filesDue++
	} else {
		took = 0
	}
	e.took("SendFile", n, took, err)
}

func (e *modelEnd) writeFiles() {
	b := e.next(1 + e.m.pick(3000))
	if e.bySender || !e.unix {
		return
	}
	fd, err := e.m.loop.kernel.Socket(sys.IPv4, sys.TCP)
	if err != nil {
		return
	}
	n, fds := len(b), slices.Repeat([]int{fd}, 1+e.m.pick(4))
	if err = e.conn.WriteFiles(b, fds...); err != nil {
		n = 0
	}
	_ = e.m.loop.kernel.Close(fd)
	e.took("WriteFiles", len(b), n, err)
}

func (e *modelEnd) callAgain() {
	e.m.note("%s Again", e.name)
	e.again = true
	e.conn.Again()
}

func (e *modelEnd) pause() {
	e.m.note("%s Pause", e.name)
	e.conn.Pause()
}

func (e *modelEnd) resume() {
	e.m.note("%s Resume", e.name)
	e.conn.Resume()
}

func (e *modelEnd) close() {
	err := e.conn.Close()
	e.m.note("%s Close: %v", e.name, err)
	e.closing = true
}

func (e *modelEnd) doReset() {
	err := e.conn.Reset()
	e.m.note("%s Reset: %v", e.name, err)
	if (err == nil) != (e.conn.closeDue && e.closes == 0) && e.closes > 0 {
		e.m.fail("%s: Reset after OnClose: %v", e.name, err)
	}
	e.reset = true
}

func (e *modelEnd) closeWrite() {
	err := e.conn.CloseWrite()
	e.m.note("%s CloseWrite: %v", e.name, err)
	e.endWrite = true
}

func (e *modelEnd) setTimeout() {
	what := Timeout(1 + e.m.pick(4))
	d := []time.Duration{-1, 0, 1, time.Millisecond, time.Hour}[e.m.pick(5)]
	e.m.note("%s SetTimeout %v %v", e.name, what, d)
	if what == Deadline {
		e.conn.SetDeadline(time.Now().Add(d))
		return
	}
	if d == 1 {
		d = time.Millisecond // a limit of nothing is over all the time
	}
	e.conn.SetTimeout(what, d)
}

func (e *modelEnd) setHandler() {
	e.m.note("%s SetHandler", e.name)
	h := e.handler()
	if e.m.pick(3) == 0 {
		h.OnEnd = nil
	}
	if e.m.pick(3) == 0 {
		h.OnTimeout = nil
	}
	if e.m.pick(3) == 0 {
		h.OnStop = nil
	}
	e.conn.SetHandler(h)
}

func (e *modelEnd) actLater() {
	n := 1 + e.m.pick(3)
	e.m.later(time.Duration(e.m.pick(4))*300*time.Microsecond, func() { e.act(n) })
}

func (e *modelEnd) actNext() {
	n := 1 + e.m.pick(3)
	e.m.loop.NextTurn(func() {
		e.m.inside++
		e.act(n)
		e.m.inside--
	})
}

func (e *modelEnd) export() {
	if e.m.pick(3) > 0 {
		return
	}
	fd, err := e.conn.Export()
	e.m.note("%s Export: %v", e.name, err)
	if errors.Is(err, ErrWouldBlock) {
		e.refused = true
	}
	if err == nil {
		e.shared = true
		_ = e.m.loop.kernel.Close(fd)
	}
}

func (e *modelEnd) flush() {
	e.m.note("%s Flush", e.name)
	e.conn.Flush()
}

func (e *modelEnd) setLane() {
	i := e.m.pick(len(e.m.lanes))
	e.m.note("%s SetLane %d", e.name, i)
	e.conn.SetLane(e.m.lanes[i])
}

func (e *modelEnd) seldomStop() {
	if e.m.pick(8) > 0 || e.m.stopped {
		return
	}
	e.m.note("Stop")
	e.m.stopped = true
	e.m.loop.Stop(-1)
}

// check looks at an end between two things.
func (e *modelEnd) check() {
	c := e.conn
	s := c.Stats()
	if c.mayWrite() == nil && !e.bySender && e.filesDue == 0 && int(s.Written)+s.Queued != e.taken {
		e.m.fail("%s: %d written and %d queued of %d taken", e.name, s.Written, s.Queued, e.taken)
	}
	if c.state == connOpen && int(s.Read) < e.got {
		e.m.fail("%s: %d read, %d delivered", e.name, s.Read, e.got)
	}
}

// callback sees whether a callback may come, and then does up to n things.
func (e *modelEnd) callback(name string, quietAfterClose bool, n int) {
	m := e.m
	m.note("%s %s", e.name, name)
	switch {
	case m.inside > 0:
		m.fail("%s: %s inside of another callback", e.name, name)
	case e.closes > 0:
		m.fail("%s: %s after OnClose", e.name, name)
	case e.opens == 0 && name != "OnClose" && name != "done":
		m.fail("%s: %s before OnOpen", e.name, name)
	case quietAfterClose && (e.closing || e.reset):
		m.fail("%s: %s after Close", e.name, name)
	}
	m.inside++
	e.act(m.some(n))
	m.inside--
}

// some is a number up to n, most often none.
func (m *connModel) some(n int) int {
	if m.over {
		return 0
	}
	return max(m.pick(n+3)-2, 0)
}

func (e *modelEnd) handler() ConnHandler {
	return ConnHandler{
		OnOpen: func(c *Conn) {
			if e.conn == nil {
				e.conn = c
			}
			e.opens++
			e.callback("OnOpen", true, 4)
		},
		OnData: e.onData,
		OnFiles: func(c *Conn, f *Files) {
			if f.Len() > c.limits.files {
				e.m.fail("%s: %d descriptors, at most %d", e.name, f.Len(), c.limits.files)
			}
			if f.Len() > 0 && e.m.some(1) == 1 {
				_ = e.m.loop.kernel.Close(f.Take(0))
			}
			e.callback("OnFiles", true, 2)
			e.whileFiles = c.Paused()
		},
		OnDrain: func(*Conn) {
			if !e.refused {
				e.m.fail("%s: OnDrain, and nothing was refused", e.name)
			}
			e.refused = false
			e.callback("OnDrain", true, 3)
		},
		OnEnd: func(*Conn) {
			if e.ended {
				e.m.fail("%s: OnEnd twice", e.name)
			}
			e.ended = true
			e.callback("OnEnd", true, 3)
			if e.m.over && !e.closing && !e.reset {
				e.close()
			}
		},
		OnStop: func(*Conn) {
			if e.stops++; e.stops > 1 || !e.m.stopped || e.refused && e.conn.refused {
				e.m.fail("%s: OnStop, time %d, stopped %v, refused %v", e.name, e.stops, e.m.stopped, e.refused)
			}
			e.callback("OnStop", true, 3)
		},
		OnTimeout: func(_ *Conn, what Timeout) { e.callback("OnTimeout "+what.String(), true, 2) },
		OnClose: func(_ *Conn, err error) {
			e.err = err
			e.m.note("%s ends: %v", e.name, err)
			e.callback("OnClose", false, 0)
			e.closes++
			e.m.inside++
			e.act(e.m.some(2))
			e.m.inside--
		},
	}
}

func (e *modelEnd) onData(c *Conn, b []byte) {
	m := e.m
	m.note("%s reads %d", e.name, len(b))
	switch {
	case c.Paused() && !e.whileFiles:
		m.fail("%s: OnData while paused", e.name)
	case e.ended:
		m.fail("%s: OnData after OnEnd", e.name)
	case e.stops > 0:
		m.fail("%s: OnData after OnStop", e.name)
	case len(b) == 0 && !e.again:
		m.fail("%s: OnData without bytes", e.name)
	}
	if len(b) == 0 {
		e.again = false
	}
	e.whileFiles = false
	at := e.got
	e.got += len(b)
	for rest := b; len(rest) > 0; {
		n := min(len(rest), modelMost)
		if !bytes.Equal(rest[:n], m.noise[at%modelPeriod:][:n]) {
			m.fail("%s: the bytes from %d on are others", e.name, at)
		}
		at, rest = at+n, rest[n:]
	}
	clear(b) // it is ours until we return
	e.callback("OnData", true, 3)
}

// checkEnd looks at what is left when all is over.
func (m *connModel) checkEnd() {
	s := m.loop.Stats().Streams
	taken, got, opened := 0, 0, 0
	for _, p := range m.pairs {
		for _, e := range p {
			taken, got, opened = taken+e.taken, got+e.got, opened+e.opens
			if e.conn != nil && e.closes != 1 {
				m.fail("%s: OnClose came %d times", e.name, e.closes)
			}
			if e.filesDue != 0 {
				m.fail("%s: %d files are not done", e.name, e.filesDue)
			}
			e.checkLost()
		}
	}
	if s.Open != 0 || s.QueuedBytes != 0 || int(s.Closed) != opened || s.Closed > s.Accepted+s.Dialled {
		m.fail("at the end %d opened, %+v", opened, s)
	}
	if int(s.ReadBytes) != got+int(s.Discarded) {
		m.fail("%d bytes delivered, %+v", got, s)
	}
	if !m.files && int(s.WrittenBytes+s.UnsentBytes) != taken {
		m.fail("%d bytes taken, %+v", taken, s)
	}
}

// checkLost sees that this end has got all of what the other took, unless it was told, or itself the reason.
func (e *modelEnd) checkLost() {
	from := e.peer
	if e.got > from.taken {
		e.m.fail("%s: %d bytes came of %d", e.name, e.got, from.taken)
	}
	gone := from.reset || from.err != nil                // what it had taken is lost, which a unix socket does not tell
	madeUp := from.err != nil && len(e.m.plan.Rules) > 0 // a kernel that says so has sent no clean end
	never := from.opens == 0                             // a dial that was given up
	told := e.err != nil || e.closing || e.reset || e.m.stopped
	lost := e.opens > 0 && e.got < from.taken
	if lost && !e.m.hard && (e.ended || !told) && !never && !madeUp && !(gone && (e.unix || from.shared)) {
		e.m.fail("%s: %d bytes came of %d, and then a clean end", e.name, e.got, from.taken)
	}
}
