package weir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weirnet/weir/fault"
)

// oraclePlans are what happens to the calls of the loop. Where the pieces are small, so is what is sent.
var oraclePlans = []struct {
	name string
	plan string
	most int // bytes of a connection
}{
	{"plain", "", 3 << 20},
	{"short writes", "write=short:3", 10_000},
	{"short reads", "read=short:5", 10_000},
	{"stops", "read%0.4=EAGAIN; write%0.4=EAGAIN; accept%0.5=EAGAIN; connect%0.2=EINTR; shutdown=EINTR", 500_000},
	{"no memory", "read%0.02=ENOBUFS; write%0.02=ENOMEM; accept%0.2=ENOMEM", 300_000},
	{"all of it", "seed=7; write%0.3=short:977; read%0.3=short:101; read%0.2=EAGAIN; write%0.2=EAGAIN; wait%0.1=short:1", 300_000},
}

// TestStreamOracle has the same clients talk to a loop and to a server of package net, which is the oracle: what comes
// back is the same, byte for byte. Then a loop is the client.
func TestStreamOracle(t *testing.T) { runOracle(t, 2*time.Second) }

func runOracle(t *testing.T, all time.Duration) {
	seed := rand.Uint64()
	for i, p := range oraclePlans {
		t.Run(p.name, func(t *testing.T) {
			plan, err := fault.Parse(p.plan)
			if err != nil {
				t.Fatal(err)
			}
			o := newOracle(t, plan)
			start := time.Now()
			for n := uint64(i); n == uint64(i) || time.Since(start) < all/time.Duration(len(oraclePlans)) && !t.Failed(); n += 100 {
				o.round(t, seed+n, p.most)
			}
		})
	}
}

// oracle is a loop that echoes, a server of package net that does, and both over TCP and unix sockets.
type oracle struct {
	loop      *Loop
	weir, net [2]net.Addr
}

func newOracle(t *testing.T, plan fault.Plan) *oracle {
	o := &oracle{}
	dir := t.TempDir()
	for i, l := range []net.Listener{
		listenNet(t, "tcp", "127.0.0.1:0"), listenNet(t, "unix", filepath.Join(dir, "net")),
	} {
		o.net[i] = l.Addr()
		serveNet(t, l)
	}
	o.loop = newLoop(t, Config{Faults: plan})
	cfg := ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 100_000}}
	h := ListenerHandler{Conn: ConnHandler{OnOpen: func(c *Conn) { new(echoer).serve(c) }}}
	tcp, err := o.loop.ListenTCP(loopback4, cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	unix, err := o.loop.ListenUnix(filepath.Join(dir, "weir"), cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	o.weir = [2]net.Addr{net.TCPAddrFromAddrPort(tcp.Addr()), &net.UnixAddr{Net: "unix", Name: unix.Name()}}
	done := make(chan error, 1)
	go func() { done <- o.loop.Run(context.Background()) }()
	t.Cleanup(func() {
		_ = o.loop.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return o
}

func listenNet(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serveNet has a goroutine for each connection, until the test ends.
func serveNet(t *testing.T, l net.Listener) {
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wait.Wait() })
}

// round has several connections at once, each with a script of its own.
func (o *oracle) round(t *testing.T, seed uint64, most int) {
	var wait sync.WaitGroup
	for i := range uint64(6) {
		s := newScript(seed, i, most)
		wait.Go(func() {
			kind := i % 2
			want := s.sum()
			for _, run := range []struct {
				name   string
				answer func() (answer, error)
			}{
				{"net to net", func() (answer, error) { return s.overNet(o.net[kind]) }},
				{"net to weir", func() (answer, error) { return s.overNet(o.weir[kind]) }},
				{"weir to net", func() (answer, error) { return s.overLoop(o.loop, o.net[kind]) }},
				{"weir to weir", func() (answer, error) { return s.overLoop(o.loop, o.weir[kind]) }},
			} {
				if got, err := run.answer(); got != want || err != nil {
					t.Errorf("seed %d, connection %d, %s: %d bytes came back of %d, error %v", seed, i, run.name, got.bytes, want.bytes, err)
				}
			}
		})
	}
	wait.Wait()
}

// script is what a client does. It follows from a seed.
type script struct {
	seed   [2]uint64
	writes [][]byte
	pauses []time.Duration // after each
	half   bool            // it ends its direction when all is written, else when all has come back
}

// answer is what comes back.
type answer struct {
	bytes int
	sum   [sha256.Size]byte
}

func newScript(seed, n uint64, most int) script {
	r := rand.New(rand.NewPCG(seed, n))
	s := script{seed: [2]uint64{seed, n}, half: r.IntN(2) == 0}
	for left := 1 + r.IntN(most); left > 0; {
		size := min(left, 1+r.IntN(1<<(1+r.IntN(19))))
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		s.writes = append(s.writes, b)
		s.pauses = append(s.pauses, pause(r, 8))
		left -= size
	}
	return s
}

// pause is none most often.
func pause(r *rand.Rand, oneIn int) time.Duration {
	if r.IntN(oneIn) > 0 {
		return 0
	}
	return time.Duration(r.IntN(300)) * time.Microsecond
}

func (s script) sum() (a answer) {
	h := sha256.New()
	for _, b := range s.writes {
		h.Write(b)
		a.bytes += len(b)
	}
	h.Sum(a.sum[:0])
	return a
}

// oracleTimeout is for what hangs.
const oracleTimeout = 20 * time.Second

// overNet follows the script with a connection of package net.
func (s script) overNet(to net.Addr) (a answer, err error) {
	c, err := net.Dial(to.Network(), to.String())
	if err != nil {
		return a, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(oracleTimeout))
	wrote := make(chan error, 1)
	go func() { wrote <- s.writeNet(c) }()
	h, r, want := sha256.New(), rand.New(rand.NewPCG(s.seed[0], ^s.seed[1])), s.sum().bytes
	buf := make([]byte, 1+r.IntN(100_000))
	for err == nil && (s.half || a.bytes < want) {
		n := 0
		n, err = c.Read(buf)
		h.Write(buf[:n])
		a.bytes += n
		time.Sleep(pause(r, 20))
	}
	if s.half && err == io.EOF {
		err = nil
	}
	h.Sum(a.sum[:0])
	if err != nil {
		_ = c.Close() // ends the other goroutine
	}
	return a, errors.Join(err, <-wrote)
}

func (s script) writeNet(c net.Conn) error {
	for i, b := range s.writes {
		if _, err := c.Write(b); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
		time.Sleep(s.pauses[i])
	}
	if s.half {
		return c.(interface{ CloseWrite() error }).CloseWrite()
	}
	return nil
}
