package weirtest

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/sys"
)

// sweepSome is Sweep with one errno for each call, another each time, and with all in a soak: together the scenarios make
// thousands of calls. Where it is not nil, setup stands for Scenario.Setup.
func sweepSome(t *testing.T, s Scenario, setup func(*weir.Loop, sys.Kernel) (func(error) error, error)) {
	t.Helper()
	w := newSweep(s)
	w.log, w.bubble, w.setup = t.Logf, bubbleOf(t), setup
	w.short = !soaking || testing.Short()
	w.leave = func(c fault.Call, e syscall.Errno) bool { // of a connection that is not over it is a lie, and nothing follows
		return c == fault.CloseWrite && e == syscall.ENOTCONN && !s.Lasting && !s.Machine
	}
	w.run()
	if w.lacking != nil {
		t.Skipf("the kernel lacks what the scenario needs: %v", w.lacking)
	}
	for _, f := range w.failures {
		t.Error(f)
	}
}

// sweepRows are how most scenarios are swept. A sweep on the machine's kernel takes seconds, so that of faults that last
// is for the soak.
func sweepRows() []sweepRow {
	rows := []sweepRow{{"memory", false, false}, {"memory lasting", false, true}, {"machine", true, false}}
	if soaking {
		rows = append(rows, sweepRow{"machine lasting", true, true})
	}
	return rows
}

type sweepRow struct {
	name             string
	machine, lasting bool
}

// tape is what one end of a connection writes and the other reads: bytes that follow from a number and their place, so
// that nothing can be lost, doubled or out of order unseen. The first byte is the number.
type tape int

func (n tape) at(i int) byte {
	if i == 0 {
		return byte(n)
	}
	return byte(i*(int(n)+3) + i>>8)
}

func (n tape) cut(from, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = n.at(from + i)
	}
	return b
}

// streamEnd is what an end of a connection has seen.
type streamEnd struct {
	tape     tape
	known    bool // the tape, of an accepted one
	took     int  // bytes that Write took
	got      int
	wrong    error
	opened   bool
	ended    bool // OnEnd
	closes   int
	closeErr error
}

// read compares what came with the tape.
func (e *streamEnd) read(b []byte) {
	if !e.known && len(b) > 0 {
		e.known, e.tape = true, tape(b[0])
	}
	for _, x := range b {
		if want := e.tape.at(e.got); x != want && e.wrong == nil {
			e.wrong = fmt.Errorf("byte %d of %d is %d, want %d", e.got, e.tape, x, want)
		}
		e.got++
	}
	if e.closes > 0 || e.ended {
		e.wrong = errors.Join(e.wrong, errors.New("OnData after the end"))
	}
}

func (e *streamEnd) closed(err error) {
	e.closes++
	e.closeErr = err
}

// streams is a scenario: a listener, clients on the same loop, and messages that come back.
type streams struct {
	unix    bool
	dir     string // of the path
	conn    weir.ConnConfig
	sizes   []int                    // of each client's messages
	more    func(c *weir.Conn) error // as soon as a client's connection is there
	leaver  bool                     // one more client, which closes its connection in the middle
	patient bool                     // a fault may leave connections waiting
}

// echoRun is a streams on a loop.
type echoRun struct {
	streams
	l        *weir.Loop
	total    int // bytes of all messages
	balance  StreamBalance
	clients  []*streamEnd
	servers  []*streamEnd
	listener error // what ended it
	stuck    int   // connections that were open long after all
	refused  bool  // OnError has told of a connection that was not served
}

func (s streams) setup(l *weir.Loop, _ sys.Kernel) (func(error) error, error) {
	r := &echoRun{streams: s, l: l}
	for _, size := range s.sizes {
		r.total += size
	}
	ln, err := r.listen()
	if err != nil {
		return nil, err
	}
	for i := range 2 {
		if err := r.dial(ln, tape(i), []func(*weir.Conn) error{(*weir.Conn).CloseWrite, (*weir.Conn).Close}[i], r.total); err != nil {
			return nil, err
		}
	}
	if s.leaver {
		if err := r.dial(ln, 2, (*weir.Conn).Close, 1); err != nil {
			return nil, err
		}
	}
	if !s.patient {
		l.AfterFunc(longAfter, func() { r.stuck = l.Stats().Streams.Open })
	}
	return r.check, nil
}

// longAfter is after all has come back, in memory, also where something was tried again, and before the loop is stopped.
const longAfter = 100 * time.Millisecond

func (r *echoRun) listen() (*weir.Listener, error) {
	cfg := weir.ListenerConfig{Conn: r.conn, Replace: true}
	h := weir.ListenerHandler{
		Conn:    weir.ConnHandler{OnOpen: r.serve},
		OnClose: func(_ *weir.Listener, err error) { r.listener = err },
		OnError: func(*weir.Listener, error) { r.refused = true },
	}
	if r.unix {
		return r.l.ListenUnix(pathIn(r.dir), cfg, h)
	}
	return r.l.ListenTCP(loopback, cfg, h)
}

// serve gives an accepted connection handlers that write back what comes.
func (r *echoRun) serve(c *weir.Conn) {
	e := &streamEnd{opened: true}
	r.servers = append(r.servers, e)
	c.SetHandler(weir.ConnHandler{
		OnData: func(c *weir.Conn, b []byte) {
			e.read(b)
			r.balance.Delivered += len(b)
			if c.Enqueue(b) == nil {
				e.took += len(b)
				r.balance.Accepted += len(b)
			}
		},
		OnEnd:   func(c *weir.Conn) { e.ended = true; _ = c.CloseWrite() },
		OnClose: func(_ *weir.Conn, err error) { e.closed(err) },
	})
}

// dial opens a client, which ends its connection, or its direction alone, when so much is back.
func (r *echoRun) dial(ln *weir.Listener, n tape, end func(*weir.Conn) error, enough int) error {
	e := &streamEnd{tape: n, known: true}
	h := weir.ConnHandler{
		OnOpen: func(c *weir.Conn) {
			e.opened = true
			if r.more != nil {
				if err := r.more(c); err != nil {
					e.wrong = err
				}
			}
		},
		OnData: func(c *weir.Conn, b []byte) {
			e.read(b)
			r.balance.Delivered += len(b)
			if e.got >= enough {
				_ = end(c)
			}
		},
		OnEnd: func(c *weir.Conn) {
			e.ended = true
			_ = c.CloseWrite()
		},
		OnClose: func(_ *weir.Conn, err error) { e.closed(err) },
	}
	c, err := r.connect(ln, h)
	if err != nil {
		return err
	}
	r.clients = append(r.clients, e)
	r.write(c, e)
	return nil
}

func (r *echoRun) connect(ln *weir.Listener, h weir.ConnHandler) (*weir.Conn, error) {
	if r.unix {
		return r.l.DialUnix(ln.Name(), r.conn, h)
	}
	return r.l.DialTCP(netip.AddrPort{}, ln.Addr(), r.conn, h)
}

// write writes the messages: the first before the connection is there, the others each for itself.
func (r *echoRun) write(c *weir.Conn, e *streamEnd) {
	next := 0
	r.l.Work(func() bool {
		size := r.sizes[next]
		next++
		n, err := c.Write(e.tape.cut(e.took, size))
		e.took += n
		r.balance.Accepted += n
		return err == nil && next < len(r.sizes)
	})
}

// check tells whether every byte is accounted for, and each connection's story is whole.
func (r *echoRun) check(ended error) error {
	r.balance.Stats = r.l.Stats().Streams
	all := []error{r.balance.Check()}
	whole := ended == nil && r.listener == nil && !r.refused && !r.leaver
	for _, e := range append(r.servers, r.clients...) {
		whole = whole && e.closeErr == nil && (e.ended || e.got == r.total)
		all = append(all, e.wrong)
		if e.closes != 1 {
			all = append(all, fmt.Errorf("OnClose was called %d times", e.closes))
		}
	}
	if whole {
		all = append(all, r.balance.CheckClosed())
	}
	for _, e := range r.clients[:min(len(r.clients), 2)] {
		all = append(all, r.lost(e))
	}
	if r.stuck > 0 {
		all = append(all, fmt.Errorf("%d connections wait for ever", r.stuck))
	}
	if s := r.balance.Stats; s.Open != 0 || s.QueuedBytes != 0 {
		all = append(all, fmt.Errorf("%d connections are open, %d bytes queued at the end", s.Open, s.QueuedBytes))
	}
	return errors.Join(all...)
}

// lost tells what Write took at either end of a client's connection, and was not received, without a word at either.
func (r *echoRun) lost(e *streamEnd) error {
	stats := r.balance.Stats
	told := e.closeErr != nil || r.refused && (stats.AcceptRefused > 0 || r.unix) // which reads an end, not a reset
	heard := &streamEnd{}
	for _, s := range r.servers {
		if s.known && s.tape == e.tape {
			heard = s
		}
		told = told || s.closeErr != nil && (!s.known || s.tape == e.tape)
	}
	stopped := !e.ended || !heard.ended // nobody had ended it, so that the end of the loop has
	if r.patient && stopped && e.got < r.total {
		return nil
	}
	if !told && (heard.got != e.took || e.got != heard.took) {
		return fmt.Errorf("client %d: %d bytes went out, %d of them arrived; %d went back, %d arrived; and nobody was told",
			e.tape, e.took, heard.got, heard.took, e.got)
	}
	return nil
}

// TestSweepTCPEcho holds of connections "each call, each errno that it can give: returns, nothing leaks, no spin,
// nothing accepted is lost without being told".
func TestSweepTCPEcho(t *testing.T) {
	plain := streams{sizes: []int{1, 999, 4097, 65_537}}
	small := streams{sizes: []int{1, 999, 4097, 20_001}}
	options := plain
	options.conn = weir.ConnConfig{
		Delay: true, KeepAlive: time.Minute, KeepAliveInterval: time.Second, KeepAliveCount: 3, UserTimeout: time.Minute,
		RecvBufferBytes: 1 << 16, SendBufferBytes: 1 << 14, NotSentLowAtBytes: 1 << 13, TTL: 9, TrafficClass: 8,
		IdleTimeout: time.Hour, WriteTimeout: time.Hour,
	}
	options.more, options.leaver = tell, true
	unix := small
	unix.unix, unix.dir = true, t.TempDir()
	for _, c := range []struct {
		name             string
		streams          streams
		bound            weir.Bound
		machine, lasting bool
	}{
		{"memory", plain, weir.Share(), false, false},
		{"memory lasting", small, weir.Share(), false, true},
		{"memory options", options, weir.Count(3), false, false},
		{"memory unix", unix, weir.Share(), false, false},
		{"memory unix lasting", unix, weir.Share(), false, true},
		{"machine", small, weir.Share(), true, false},
		{"machine unix lasting", unix, weir.Share(), true, true}, // of the soak
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.machine && c.lasting && !soaking {
				t.Skip("make soak has it")
			}
			c.streams.patient = c.lasting || c.machine
			sweepSome(t, Scenario{
				Config: weir.Config{Bound: c.bound}, Machine: c.machine, Lasting: c.lasting,
				MaxQuietCalls: 400, // connections for which the kernel has no memory try again each 10 ms
			}, c.streams.setup)
		})
	}
}

// tell sets and asks what a connection can be told and asked.
func tell(c *weir.Conn) error {
	for _, err := range []error{
		c.SetNoDelay(true), c.SetKeepAlive(time.Minute, time.Second, 2), c.SetLinger(-1),
		c.SetBuffers(1<<15, 1<<15), c.SetTrafficClass(16),
	} {
		var op *weir.OpError
		if err != nil && !errors.As(err, &op) {
			return fmt.Errorf("an option answers %w", err)
		}
	}
	_, _ = c.Info()
	_ = c.LocalAddr()
	_, _ = c.LocalName(), c.RemoteName()
	return nil
}

var paths atomic.Uint64

// pathIn is a path that no other run has.
func pathIn(dir string) string { return fmt.Sprintf("%s/%d", dir, paths.Add(1)) }
