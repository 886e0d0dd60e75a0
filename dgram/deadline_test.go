package dgram

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/nettest"
)

// streamEnd is a Conn as the parts of nettest take it that count on every byte and on an end: Close tells the peer by an
// empty datagram, and no more than a window is on its way.
type streamEnd struct {
	*Conn
	mine, others chan struct{} // one for each datagram on its way
}

func (e *streamEnd) Write(b []byte) (int, error) {
	e.mine <- struct{}{}
	return e.Conn.Write(b)
}

func (e *streamEnd) Read(b []byte) (int, error) {
	n, err := e.Conn.Read(b)
	if err != nil {
		return n, err
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	<-e.others
	return n, nil
}

func (e *streamEnd) Close() error {
	_, _ = e.Conn.Write(nil)
	if err := e.Conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil // the suite, which had what it wanted, was faster
}

// pacedEnd is a Conn whose writes do not overrun a reader that comes later.
type pacedEnd struct{ *Conn }

func (e pacedEnd) Write(b []byte) (int, error) {
	n, err := e.Conn.Write(b)
	if err == nil {
		time.Sleep(2 * time.Millisecond)
	}
	return n, err
}

// TestConn runs the suite for connections. Its first two parts, BasicIO and PingPong, want a stream, and FutureTimeout
// that nothing is lost; the others have the Conn as it is.
func TestConn(t *testing.T) {
	parts := 0
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		parts++
		a, b, err := connectPair(Config{RecvBufferBytes: 1 << 20})
		if err != nil {
			return nil, nil, nil, err
		}
		stop := func() { _, _ = a.Close(), b.Close() }
		switch parts {
		case 1, 2:
			there, back := make(chan struct{}, 32), make(chan struct{}, 32)
			return &streamEnd{a, there, back}, &streamEnd{b, back, there}, stop, nil
		case 9:
			return pacedEnd{a}, b, stop, nil
		}
		return a, b, stop, nil
	})
}

// waiting has a goroutine read, and gives it the time to wait.
func waiting(c *Conn) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 10))
		ended <- err
	}()
	time.Sleep(20 * time.Millisecond)
	return ended
}

func wantEnd(t *testing.T, what string, ended <-chan error, want error) {
	t.Helper()
	select {
	case err := <-ended:
		var op *net.OpError
		if !errors.Is(err, want) || !errors.As(err, &op) || op.Op != "read" && op.Op != "write" {
			t.Errorf("%s: %v; want %v", what, err, want)
		}
	case <-time.After(patience):
		t.Fatalf("%s: it goes on waiting", what)
	}
}

// TestReadDeadline: a deadline ends reads that wait, now or later, and one that is moved counts as it is now.
func TestReadDeadline(t *testing.T) {
	t.Parallel()
	c := listen(t, loopback4, Config{})
	for _, row := range []struct {
		name string
		set  []time.Duration
	}{
		{"past", []time.Duration{-time.Hour}},
		{"present", []time.Duration{0}},
		{"future", []time.Duration{30 * time.Millisecond}},
		{"extended", []time.Duration{200 * time.Millisecond, 300 * time.Millisecond}},
		{"brought forward", []time.Duration{time.Hour, 30 * time.Millisecond}},
	} {
		must(t, c.SetReadDeadline(time.Time{}))
		ended := waiting(c)
		var at time.Time
		for _, d := range row.set {
			at = time.Now().Add(d)
			must(t, c.SetReadDeadline(at))
		}
		wantEnd(t, row.name, ended, os.ErrDeadlineExceeded)
		if early := time.Until(at); early > 0 {
			t.Errorf("%s: it ended %v too early", row.name, early)
		}
	}
	must(t, c.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
	ended := waiting(c)
	must(t, c.SetReadDeadline(time.Time{}))
	select {
	case err := <-ended:
		t.Errorf("a deadline that was taken away ended a read: %v", err)
	case <-time.After(600 * time.Millisecond):
	}
	must(t, c.SetReadDeadline(time.Now()))
	wantEnd(t, "in the end", ended, os.ErrDeadlineExceeded)
}

// TestDeadlineKeepsPending: what is there when the deadline has passed is read when it is moved.
func TestDeadlineKeepsPending(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	for _, payload := range []string{"1", "2", "3"} {
		send(t, peer, payload, addrOf(c))
	}
	wantNext(t, c, "1")
	must(t, c.SetReadDeadline(time.Now()))
	for range 2 {
		if n, err := c.Read(make([]byte, 10)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
	}
	wantNext(t, c, "2", "3")
}

// TestClose wakes who reads and who writes, counts what nobody read, and is an error from the second time on.
func TestClose(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	for range 5 {
		send(t, peer, "x", addrOf(c))
	}
	wantNext(t, c, "x")
	ahead := c.Stats().Undelivered
	must(t, c.Close())
	if s := c.Stats(); s.Discarded != uint64(ahead) || s.Undelivered != 0 || s.Received != uint64(1+ahead) || s.Paths != (FastPaths{}) {
		t.Errorf("%+v; %d had been read ahead", s, ahead)
	}
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the second Close: %v", err)
	}
	quiet := listen(t, loopback4, Config{})
	var readers []<-chan error
	for range 4 {
		readers = append(readers, waiting(quiet))
	}
	var closed atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if quiet.Close() == nil {
				closed.Add(1)
			}
		})
	}
	wg.Wait()
	if closed.Load() != 1 {
		t.Errorf("%d of 4 closed it", closed.Load())
	}
	for _, r := range readers {
		wantEnd(t, "a reader", r, net.ErrClosed)
	}
	if _, err := quiet.WriteTo(nil, peer.LocalAddr()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("WriteTo: %v", err)
	}
}

// TestCloseWhileReading: whatever a Close meets, what was received was read or is counted.
func TestCloseWhileReading(t *testing.T) {
	t.Parallel()
	for range 50 {
		a, b := pair(t, Config{})
		var wg sync.WaitGroup
		var read atomic.Int64
		for range 3 {
			wg.Go(func() {
				for {
					if _, err := b.Read(make([]byte, 10)); err != nil {
						return
					}
					read.Add(1)
				}
			})
		}
		for range 20 {
			_, _ = a.Write([]byte("x"))
		}
		_ = b.Close()
		wg.Wait()
		if s := b.Stats(); s.Received != uint64(read.Load())+s.Discarded || s.Undelivered != 0 {
			t.Fatalf("received %d, read %d, discarded %d, %d undelivered", s.Received, read.Load(), s.Discarded, s.Undelivered)
		}
	}
}

// TestRest: a socket whose receives keep failing rests, and the deadline, a new one and Close end that.
func TestRest(t *testing.T) {
	t.Parallel()
	for _, errno := range []string{"ENOMEM", "EHOSTUNREACH"} {
		t.Run(errno, func(t *testing.T) {
			t.Parallel()
			c := listen(t, loopback4, Config{Faults: plan(t, "recv="+errno)})
			began := time.Now()
			must(t, c.SetReadDeadline(began.Add(300*time.Millisecond)))
			wantEnd(t, "the deadline", waiting(c), os.ErrDeadlineExceeded)
			took := time.Since(began)
			s := c.Stats()
			// Eight at once, then one each 10 ms at most.
			if most := uint64(quietFailures + 2 + took/(10*time.Millisecond)); s.ReceiveCalls > most || s.ReceiveErrors != s.ReceiveCalls {
				t.Errorf("%d calls, %d errors in %v", s.ReceiveCalls, s.ReceiveErrors, took)
			}
			must(t, c.SetReadDeadline(time.Time{}))
			ended := waiting(c)
			must(t, c.SetReadDeadline(time.Now()))
			wantEnd(t, "a new deadline", ended, os.ErrDeadlineExceeded)
			must(t, c.SetReadDeadline(time.Time{}))
			ended = waiting(c)
			must(t, c.Close())
			wantEnd(t, "Close", ended, net.ErrClosed)
		})
	}
}

// TestPause: a rest ends at the deadline, when one is set, and when the Conn is closed, however long it was to be.
func TestPause(t *testing.T) {
	t.Parallel()
	nothing := func(*Conn) {}
	for _, row := range []struct {
		name         string
		before, then func(*Conn)
	}{
		{"the deadline", func(c *Conn) { _ = c.SetReadDeadline(time.Now().Add(silence)) }, nothing},
		{"a deadline", nothing, func(c *Conn) { _ = c.SetReadDeadline(time.Now().Add(time.Hour)) }},
		{"Close", nothing, func(c *Conn) { _ = c.Close() }},
	} {
		c := listen(t, loopback4, Config{})
		row.before(c)
		c.recv.wake()
		<-c.recv.poke // what there was before is none of this rest's
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(silence)
			row.then(c)
		})
		within(t, row.name, func() { c.recv.pause(time.Hour) })
		wg.Wait()
	}
}

// TestRestEnds: receives that go well again end it.
func TestRestEnds(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{Faults: plan(t, "recv#1x12=ENOMEM")}), listen(t, loopback4, Config{})
	send(t, peer, "x", addrOf(c))
	wantNext(t, c, "x")
	if s := c.Stats(); s.ReceiveErrors != 12 || s.ReceiveCalls != 13 || s.Received != 1 {
		t.Errorf("%+v", s)
	}
	if c.recv.failures != 0 {
		t.Errorf("%d failures are remembered", c.recv.failures)
	}
}

// TestNoSpin: who waits for what cannot come takes next to nothing of the processor.
func TestNoSpin(t *testing.T) {
	for _, text := range []string{"recv=ENOMEM", "recv=ECONNREFUSED", "send=EAGAIN"} {
		c := listen(t, loopback4, Config{Faults: plan(t, text)})
		before := processorTime()
		must(t, c.SetDeadline(time.Now().Add(time.Second)))
		_, err := c.WriteTo([]byte("x"), c.LocalAddr())
		if strings.HasPrefix(text, "send") != errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", text, err)
		}
		_, _ = c.Read(make([]byte, 1))
		if used := processorTime() - before; used > 400*time.Millisecond {
			t.Errorf("%s: %v of the processor in a second; %s", text, used, fmt.Sprint(c.Faults().Calls()))
		}
	}
}
