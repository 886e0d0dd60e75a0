package weir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/memsys"
)

// TestConnModel has both ends of connections do whatever there is to be done, in every callback and in between, and
// sees that each keeps what is promised of it.
func TestConnModel(t *testing.T) {
	dir := t.TempDir()
	file := modelFile(t, dir)
	for _, on := range []struct {
		name   string
		kernel func() *Kernel
	}{
		{"memory", func() *Kernel { return NewKernel(memsys.New().Backend()) }},
		{"kernel", func() *Kernel { return realKernel(t) }},
	} {
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			rapid.Check(t, func(rt *rapid.T) {
				runs++
				m := &connModel{T: rt, file: file, plan: drawModelPlan(rt)}
				m.run(on.kernel(), filepath.Join(dir, fmt.Sprint(on.name, runs)))
			})
		})
	}
}

// modelPlans are what may go wrong meanwhile. In the last two connections may break by it.
var modelPlans = []string{
	"", "", "",
	"read%0.2=EAGAIN; write%0.2=EAGAIN; accept%0.3=EAGAIN",
	"read%0.3=short:7; write%0.3=short:3; sendfile%0.3=short:100; writefiles%0.3=short:1; readfiles%0.3=short:5",
	"read%0.1=ENOBUFS; write%0.1=ENOBUFS; accept%0.1=ENOMEM",
	"accept%0.4=EMFILE; dup%0.3=EMFILE; wait%0.2=short:1",
	"read%0.05=ECONNRESET; write%0.05=EPIPE; shutdown%0.2=ENOTCONN; sendfile%0.2=EINVAL; getsockopt%0.1=EBADF",
	"add%0.1=ENOMEM; modify%0.1=ENOMEM; socket%0.1=EMFILE; connect%0.1=ECONNREFUSED",
}

func drawModelPlan(t *rapid.T) fault.Plan {
	p, err := fault.Parse(rapid.SampledFrom(modelPlans).Draw(t, "plan"))
	if err != nil {
		t.Fatal(err)
	}
	p.Seed = rapid.Uint64Range(1, 1<<32).Draw(t, "seed")
	return p
}

// A stream of the model is the noise, over and over.
const (
	modelPeriod = 65521
	modelMost   = 300_000 // bytes of one write
)

func modelBytes() []byte {
	b := make([]byte, modelPeriod+modelMost)
	for i := range b {
		x := uint32(i%modelPeriod) * 2654435761
		b[i] = byte(x >> 24)
	}
	return b
}

func modelFile(t *testing.T, dir string) *os.File {
	t.Helper()
	name := filepath.Join(dir, "stream")
	if err := os.WriteFile(name, modelBytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// connModel is one run: a loop with pairs of connections.
type connModel struct {
	*rapid.T
	loop    *Loop
	file    *os.File
	plan    fault.Plan
	noise   []byte
	pairs   [][2]*modelEnd
	lns     []*Listener
	lanes   []*Lane
	log     []string
	left    int  // things that may still be done
	inside  int  // callbacks that run
	over    bool // the time of doing things is
	hard    bool // the loop was closed under them
	stopped bool
	files   bool // some were sent
	failed  string
}

// modelEnd is one end of a connection, with what it has been through.
type modelEnd struct {
	m    *connModel
	name string
	conn *Conn
	peer *modelEnd
	unix bool

	bySender bool // it writes by that alone
	taken    int  // bytes that were
	got      int
	again    bool

	opens, stops, closes     int
	ended                    bool
	closing, reset, endWrite bool
	refused, shared          bool
	filesDue                 int
	whileFiles               bool // OnFiles has paused it: its bytes come all the same
	err                      error
}

func (m *connModel) pick(n int) int {
	return rapid.IntRange(0, n-1).Draw(m.T, "pick")
}

func (m *connModel) fail(format string, args ...any) {
	if m.failed == "" {
		m.failed = fmt.Sprintf(format, args...)
		m.log = append(m.log, "FAIL "+m.failed)
	}
}

func (m *connModel) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

// run has the time of doing things, looks whether the loop comes to rest, and ends it.
func (m *connModel) run(k *Kernel, path string) {
	l, err := New(Config{Kernel: k, Faults: m.plan, StopWhenIdle: true})
	if err != nil {
		m.Skip(err)
	}
	l.native = true
	m.loop, m.noise, m.left = l, modelBytes(), 80
	m.lanes = []*Lane{nil, l.NewLane(), l.NewLane()}
	for i := range 1 + m.pick(3) {
		m.pair(i, path)
	}
	m.later(2*time.Millisecond, func() {
		m.over = true
		m.rest(20, func() { m.finish() })
	})
	ctx, cancel := modelContext()
	defer cancel()
	err = l.Run(ctx)
	if err != nil {
		m.fail("Run: %v", err)
	}
	m.checkEnd()
	if m.failed != "" {
		m.Fatalf("%s\n%s", m.failed, m.tail())
	}
}

func (m *connModel) tail() (s string) {
	for _, line := range m.log[max(len(m.log)-150, 0):] {
		s += line + "\n"
	}
	return s
}

// later is a timer; what it calls counts as a callback.
func (m *connModel) later(d time.Duration, fn func()) {
	m.loop.AfterFunc(d, func() {
		m.inside++
		fn()
		m.inside--
	})
}

// rest waits for a time in which the loop has nothing to do: what is open there needs no turns but those of time limits.
func (m *connModel) rest(tries int, then func()) {
	before, moved := m.loop.Turn(), m.moved()
	m.later(3*time.Millisecond, func() {
		switch turns := m.loop.Turn() - before; {
		case turns <= 60, tries == 0 && m.moved() != moved:
			then()
		case tries == 0:
			m.fail("%d turns in 3 ms with nothing to do", turns)
			then()
		default:
			m.rest(tries-1, then)
		}
	})
}

// moved is how many bytes were, in either direction.
func (m *connModel) moved() uint64 {
	s := m.loop.Stats().Streams
	return s.ReadBytes + s.WrittenBytes
}

// finish ends everything, in one way or another.
func (m *connModel) finish() {
	m.note("finish")
	for _, ln := range m.lns {
		if m.stopped {
			break
		}
		_ = ln.Close()
	}
	switch m.pick(4) {
	case 0:
		m.hard = true
		_ = m.loop.Close()
		return
	case 1:
		m.hard, m.stopped = true, true // the grace may be over
		m.loop.Stop(20 * time.Millisecond)
	}
	for _, p := range m.pairs {
		first := m.pick(2) // the other reads to the end
		for i, e := range p {
			if e.conn == nil {
				continue
			}
			e.conn.Resume()
			alone := e.ended || e.peer.conn == nil || e.peer.closes > 0
			if (i == first || alone) && !e.closing && !e.reset && e.closes == 0 {
				e.close()
			}
		}
	}
}

// pair makes a listener of its own, so that both ends are known, and dials.
func (m *connModel) pair(i int, path string) {
	unix := m.pick(2) == 0
	a := &modelEnd{m: m, name: fmt.Sprintf("d%d", i), unix: unix, bySender: m.pick(4) == 0}
	b := &modelEnd{m: m, name: fmt.Sprintf("a%d", i), unix: unix, bySender: m.pick(4) == 0}
	a.peer, b.peer = b, a
	h := ListenerHandler{Conn: b.handler()}
	var ln *Listener
	var err error
	if unix {
		ln, err = m.loop.ListenUnix(fmt.Sprint(path, "-", i), ListenerConfig{Conn: m.config()}, h)
	} else {
		ln, err = m.loop.ListenTCP(loopback4, ListenerConfig{Conn: m.config()}, h)
	}
	if err != nil {
		m.note("listen: %v", err)
		return
	}
	m.lns = append(m.lns, ln)
	if unix {
		a.conn, err = m.loop.DialUnix(ln.Name(), m.config(), a.handler())
	} else {
		a.conn, err = m.loop.DialTCP(loopbackAny(), ln.Addr(), m.config(), a.handler())
	}
	if err != nil {
		m.note("dial: %v", err)
		a.conn = nil
	}
	m.pairs = append(m.pairs, [2]*modelEnd{a, b})
	a.act(m.pick(4))
}

func (m *connModel) config() ConnConfig {
	c := ConnConfig{
		WriteBufferBytes: []int{1, 100, 5000, 100_000, 1 << 20}[m.pick(5)], MaxFiles: []int{0, 1, 3}[m.pick(3)],
		CloseTimeout: 30 * time.Millisecond, DialTimeout: 30 * time.Millisecond,
	}
	if m.pick(2) == 0 {
		c.RecvBufferBytes, c.SendBufferBytes = 4096, 4096
	}
	c.Bound = []Bound{Share(), Count(2), Unbounded()}[m.pick(3)]
	if m.pick(4) == 0 {
		c.IdleTimeout, c.ReadTimeout, c.WriteTimeout = time.Millisecond, time.Millisecond, time.Millisecond
	}
	return c
}

// act does up to n things, now.
func (e *modelEnd) act(n int) {
	for range n {
		if e.m.over || e.m.left == 0 || e.conn == nil {
			return
		}
		e.m.left--
		acts := modelActs()
		acts[e.m.pick(len(acts))](e)
		e.check()
	}
}

// modelActs are what an end may do. What is done more often is there more often.
func modelActs() []func(e *modelEnd) {
	return []func(e *modelEnd){
		(*modelEnd).write, (*modelEnd).write, (*modelEnd).write, (*modelEnd).writev, (*modelEnd).enqueue,
		(*modelEnd).sendFile, (*modelEnd).writeFiles, (*modelEnd).callAgain, (*modelEnd).callAgain,
		(*modelEnd).pause, (*modelEnd).pause, (*modelEnd).resume, (*modelEnd).resume, (*modelEnd).resume,
		(*modelEnd).close, (*modelEnd).doReset, (*modelEnd).closeWrite, (*modelEnd).setTimeout, (*modelEnd).setHandler,
		(*modelEnd).actLater, (*modelEnd).actLater, (*modelEnd).actLater, (*modelEnd).actNext, (*modelEnd).export,
		(*modelEnd).flush, (*modelEnd).setLane, (*modelEnd).setLane, (*modelEnd).seldomStop,
	}
}

func (e *modelEnd) size() int {
	return []int{0, 1, 10, 3000, 15_000, 20_000, 100_000, modelMost}[e.m.pick(8)]
}

func (e *modelEnd) next(n int) []byte { return e.m.noise[e.taken%modelPeriod:][:n] }

// took takes note of what a write answered.
func (e *modelEnd) took(what string, asked, n int, err error) {
	e.m.note("%s %s %d: %d, %v", e.name, what, asked, n, err)
	e.taken += n
	switch {
	case n > asked, err == nil && n < asked:
		e.m.fail("%s: %s took %d of %d, error %v", e.name, what, n, asked, err)
	case errors.Is(err, ErrWouldBlock):
		e.refused = e.refused || !e.bySender
	case err == nil && (e.closing || e.reset || e.closes > 0):
		e.m.fail("%s: %s after Close: no error", e.name, what)
	case err == nil && e.endWrite:
		e.m.fail("%s: %s after CloseWrite: no error", e.name, what)
	}
}

func (e *modelEnd) write() {
	b := e.next(e.size())
	if e.bySender {
		n, err := e.conn.Sender().Write(b)
		if len(b) > 0 {
			e.took("Sender.Write", len(b), n, err)
		}
		return
	}
	n, err := e.conn.Write(b)
	e.took("Write", len(b), n, err)
}

func (e *modelEnd) writev() {
	b := e.next(e.size())
	if e.bySender {
		return
	}
	at := e.m.pick(len(b) + 1)
	n, err := e.conn.Writev([][]byte{nil, b[:at], b[at:]})
	e.took("Writev", len(b), n, err)
}

func (e *modelEnd) enqueue() {
	b := e.next(e.size())
	if e.bySender {
		return
	}
	n, err := len(b), e.conn.Enqueue(b)
	if err != nil {
		n = 0
	}
	e.took("Enqueue", len(b), n, err)
	e.refused = true // or may be taken to be
}
