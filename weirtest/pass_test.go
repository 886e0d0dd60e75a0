package weirtest

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/internal/sys"
)

// passing is a scenario: a client passes descriptors to a server over a unix connection, each time one of a UDP socket,
// through which the server answers, and one of a socket that neither loop nor server knows.
type passing struct {
	dir     string
	times   int
	lasting bool // what is sent may stay where it is
}

// passRun is a passing on a loop.
type passRun struct {
	passing
	l        *weir.Loop
	k        sys.Kernel
	inbox    *weir.UDP
	client   *streamEnd
	server   *streamEnd
	accepted []uint64 // cookies of the strange sockets that WriteFiles took, in order
	received []uint64
	answers  int
	answered int // adopted sockets that have sent
	unserved bool
	broken   error // of something that is no connection
	wrong    error
}

func (p passing) setup(l *weir.Loop, k sys.Kernel) (func(error) error, error) {
	r := &passRun{passing: p, l: l, k: k, client: &streamEnd{known: true, tape: 1}, server: &streamEnd{}}
	var err error
	r.inbox, err = l.ListenUDP(loopback, weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(*weir.UDP, *weir.Datagram) { r.answers++ },
		OnClose:    func(_ *weir.UDP, err error) { r.broken = errors.Join(r.broken, err) },
	})
	if err != nil {
		return nil, err
	}
	ln, err := l.ListenUnix(pathIn(p.dir), weir.ListenerConfig{Conn: weir.ConnConfig{MaxFiles: 2}}, weir.ListenerHandler{
		OnError: func(*weir.Listener, error) { r.unserved = true },
		OnClose: func(_ *weir.Listener, err error) { r.unserved = r.unserved || err != nil },
		Conn: weir.ConnHandler{
			OnOpen:  func(*weir.Conn) { r.server.opened = true },
			OnFiles: r.take,
			OnData:  func(_ *weir.Conn, b []byte) { r.server.read(b) },
			OnClose: func(_ *weir.Conn, err error) { r.server.closed(err) },
		},
	})
	if err != nil {
		return nil, err
	}
	_, err = l.DialUnix(ln.Name(), weir.ConnConfig{}, weir.ConnHandler{
		OnOpen:  r.pass,
		OnClose: func(_ *weir.Conn, err error) { r.client.closed(err) },
	})
	return r.check, err
}

// pass writes messages with descriptors, which it closes at once, and text between them.
func (r *passRun) pass(c *weir.Conn) {
	for range r.times {
		if err := r.passOne(c); err != nil {
			var op *weir.OpError
			if !errors.As(err, &op) && !errors.Is(err, weir.ErrClosed) {
				r.wrong = err
			}
		}
		r.write(c, 777)
	}
	_ = c.CloseWrite()
}

func (r *passRun) write(c *weir.Conn, size int) {
	n, _ := c.Write(r.client.tape.cut(r.client.took, size))
	r.client.took += n
}

func (r *passRun) passOne(c *weir.Conn) error {
	u, err := r.l.ListenUDP(loopback, weir.UDPConfig{NoGRO: true}, weir.UDPHandler{})
	if err != nil {
		return err
	}
	defer u.Close()
	fd, _, err := u.Export()
	if err != nil {
		return err
	}
	defer r.k.Close(fd)
	strange, err := r.k.Socket(sys.IPv4, sys.UDP)
	if err != nil {
		return err
	}
	defer r.k.Close(strange)
	d, err := r.k.Describe(strange)
	if err != nil {
		return err
	}
	if err := c.WriteFiles(r.client.tape.cut(r.client.took, 33), fd, strange); err != nil {
		return err
	}
	r.client.took += 33
	r.accepted = append(r.accepted, d.Cookie)
	return nil
}

// take adopts the UDP socket and answers through it, and keeps the other.
func (r *passRun) take(_ *weir.Conn, f *weir.Files) {
	if f.Truncated() || f.Len() != 2 {
		r.wrong = fmt.Errorf("%d descriptors came, truncated %v", f.Len(), f.Truncated())
		return
	}
	strange := f.Take(1)
	d, err := r.k.Describe(strange)
	if e := r.k.Close(strange); err != nil || e != nil {
		r.wrong = errors.Join(err, e)
	}
	r.received = append(r.received, d.Cookie)
	u, err := r.l.AdoptUDP(f.FD(0), weir.UDPConfig{}, weir.UDPHandler{
		OnClose: func(_ *weir.UDP, err error) { r.broken = errors.Join(r.broken, err) },
	})
	if err != nil {
		r.broken = errors.Join(r.broken, err)
		return
	}
	if u.Send([]byte("through it"), r.inbox.LocalAddr()) == nil {
		r.answered++
	}
}

func (r *passRun) check(ended error) error {
	told := ended != nil || r.unserved || r.client.closeErr != nil || r.server.closeErr != nil
	all := []error{r.wrong, r.server.wrong}
	for i, cookie := range r.received {
		if i >= len(r.accepted) || r.accepted[i] != cookie {
			all = append(all, fmt.Errorf("descriptors %v were passed, %v received", r.accepted, r.received))
			break
		}
	}
	stats := r.l.Stats()
	if len(r.received) < len(r.accepted) && !told {
		all = append(all, fmt.Errorf("%d messages with descriptors of %d came, and nobody was told", len(r.received), len(r.accepted)))
	}
	if r.server.got != r.client.took && !told {
		all = append(all, fmt.Errorf("%d bytes of %d came, and nobody was told", r.server.got, r.client.took))
	}
	lost := int(stats.UDP.SendLost + stats.UDP.Unsent)
	if r.answers+lost != r.answered && !r.lasting && r.broken == nil && ended == nil && stats.UDP.Discarded == 0 {
		all = append(all, fmt.Errorf("%d answers of %d came, %d are counted as lost", r.answers, r.answered, lost))
	}
	return errors.Join(all...)
}

// TestSweepUnixPass holds "each descriptor that is passed is received once, or its loss is told", whatever call fails,
// and nothing leaks.
func TestSweepUnixPass(t *testing.T) {
	p := passing{dir: t.TempDir(), times: 2}
	for _, c := range sweepRows() {
		t.Run(c.name, func(t *testing.T) {
			p.lasting = c.lasting
			sweepSome(t, Scenario{Machine: c.machine, Lasting: c.lasting}, p.setup)
		})
	}
}

// grams is a scenario: two unix datagram sockets that answer each other, many at a time.
type grams struct {
	dir       string
	datagrams int
}

// gramEnd is one of them.
type gramEnd struct {
	u        *weir.Unixgram
	accepted []string
	got      []string
	broken   bool // OnClose told an error, or OnError one
}

func (e *gramEnd) handler(got func(*weir.Unixgram, string)) weir.UnixgramHandler {
	return weir.UnixgramHandler{
		OnDatagram: func(u *weir.Unixgram, d *weir.UnixDatagram) {
			e.got = append(e.got, string(d.Payload))
			got(u, string(d.Payload))
		},
		OnError: func(*weir.Unixgram, error) { e.broken = true },
		OnClose: func(_ *weir.Unixgram, err error) { e.broken = e.broken || err != nil },
	}
}

func (e *gramEnd) send(s, to string) error {
	err := e.u.Send([]byte(s), to)
	if err == nil {
		e.accepted = append(e.accepted, s)
	}
	return err
}

func (g grams) setup(l *weir.Loop, _ sys.Kernel) (func(error) error, error) {
	server, client := &gramEnd{}, &gramEnd{}
	names := [2]string{pathIn(g.dir), pathIn(g.dir)}
	var err error
	server.u, err = l.ListenUnixgram(names[0], weir.UnixgramConfig{Replace: true}, server.handler(
		func(_ *weir.Unixgram, s string) { _ = server.send("re "+s, names[1]) }))
	if err != nil {
		return nil, err
	}
	sent := 0
	send := func() bool { // some are refused, as the queue of the other is short
		for range 3 {
			if sent < g.datagrams && client.send(fmt.Sprint("datagram ", sent), "") == nil {
				sent++
			}
		}
		return sent < g.datagrams && !client.broken
	}
	h := client.handler(func(*weir.Unixgram, string) {})
	h.OnDrain = func(*weir.Unixgram) { send() }
	client.u, err = l.DialUnixgram(names[1], names[0], weir.UnixgramConfig{SendBufferBytes: 1 << 16}, h)
	if err != nil {
		return nil, err
	}
	tries := 0
	l.Work(func() bool { tries++; return send() && tries < 8 })
	return func(ended error) error {
		told := ended != nil || server.broken || client.broken
		return errors.Join(gramsLost(client.accepted, server.got, told), gramsLost(server.accepted, client.got, told))
	}, nil
}

// gramsLost tells what was accepted and did not come, or not in order. A loss that was told may be at the end only.
func gramsLost(sent, got []string, told bool) error {
	for i, s := range got {
		if i >= len(sent) || sent[i] != s {
			return fmt.Errorf("%q came as number %d of %d", s, i, len(sent))
		}
	}
	if len(got) < len(sent) && !told {
		return fmt.Errorf("%d datagrams of %d came, and nobody was told", len(got), len(sent))
	}
	return nil
}

// TestSweepUnixgram holds "it loses nothing, and keeps datagrams in order", whatever call fails.
func TestSweepUnixgram(t *testing.T) {
	g := grams{dir: t.TempDir(), datagrams: 12}
	for _, c := range sweepRows() {
		t.Run(c.name, func(t *testing.T) {
			sweepSome(t, Scenario{Machine: c.machine, Lasting: c.lasting}, g.setup)
		})
	}
}

// watchSetup is a scenario: a socket that the loop knows by a Watch, and datagrams for it.
func watchSetup(l *weir.Loop, k sys.Kernel) (func(error) error, error) {
	fd, err := k.Socket(sys.IPv4, sys.UDP)
	if err != nil {
		return nil, err
	}
	own := func(err error) (func(error) error, error) {
		_ = k.Close(fd)
		return nil, err
	}
	if err := k.Bind(fd, loopback); err != nil {
		return own(err)
	}
	local, err := k.LocalAddr(fd)
	if err != nil {
		return own(err)
	}
	const word = "seen by a watch"
	got, accepted, closes, writable := 0, 0, 0, 0
	var closeErr error
	batch := sys.NewRecvBatch(1, 1<<10)
	w, err := l.Watch(fd, weir.WatchHandler{
		OnReadable: func(w *weir.Watch) {
			for {
				if n, err := k.Recv(fd, batch, 1); n == 0 || err != nil {
					break
				}
				if string(batch.Msgs[0].Buf) == word { // others of this machine may still send to a port that was theirs
					got++
				}
			}
			w.WantWritable(got%2 == 1)
		},
		OnWritable: func(w *weir.Watch) {
			writable++
			w.WantWritable(false)
			w.Pause()
			l.NextTurn(w.Resume)
		},
		OnClose: func(_ *weir.Watch, err error) {
			closes++
			closeErr = err
			_ = k.Close(fd)
		},
	})
	if err != nil {
		return own(err)
	}
	u, err := l.DialUDP(netip.AddrPort{}, local, weir.UDPConfig{}, weir.UDPHandler{})
	if err != nil {
		return nil, err // the end of the loop closes the watch
	}
	tries := 0
	var send func() // one after the other, so that the watch wants now this, now that in between
	send = func() {
		tries++
		if u.Send([]byte(word), netip.AddrPort{}) == nil {
			accepted++
		}
		if tries < 5 {
			l.AfterFunc(time.Millisecond, send)
		}
	}
	send()
	return func(ended error) error {
		s := l.Stats().UDP
		if closes != 1 || w.FD() != fd {
			return fmt.Errorf("OnClose was called %d times", closes)
		}
		if closeErr == nil && ended == nil && uint64(got) != s.Sent {
			return fmt.Errorf("%d datagrams were sent, %d seen", s.Sent, got)
		}
		return nil
	}, nil
}

// TestSweepWatch holds of a descriptor of the program's own that what is ready is told, or the end of the watch is,
// whatever call fails.
func TestSweepWatch(t *testing.T) {
	for _, c := range sweepRows() {
		t.Run(c.name, func(t *testing.T) {
			sweepSome(t, Scenario{Machine: c.machine, Lasting: c.lasting}, watchSetup)
		})
	}
}
