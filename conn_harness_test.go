package weir

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// peer is the other end of a connection, outside of the loop: it does what a test says and nothing by itself.
type peer struct {
	t    *testing.T
	k    sys.Kernel
	fd   int
	v    *sys.Vector
	got  []byte
	over bool  // it has read the end
	err  error // it has read an error
}

// newPeer connects to a listener of the loop. SO_RCVBUF stays as it is where recv is 0.
func newPeer(t *testing.T, l *Loop, ln *Listener, recv int) *peer {
	t.Helper()
	p := &peer{t: t, k: l.kernel, fd: -1, v: sys.NewVector(1)}
	var err error
	if ln.Name() != "" {
		p.fd, err = sock.ConnectUnix(p.k, ln.Name(), sock.StreamSettings{})
	} else {
		p.fd, _, _, err = sock.ConnectTCP(p.k, sock.TCPOptions{StreamSettings: sock.StreamSettings{RecvBufferBytes: recv}}, ln.Addr())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// write writes what the kernel takes of b, and tells how much that was.
func (p *peer) write(b []byte) (n int) {
	p.t.Helper()
	for n < len(b) {
		p.v.Bufs = append(p.v.Bufs[:0], b[n:])
		k, err := p.k.Write(p.fd, p.v, false)
		if err == syscall.EAGAIN {
			return n
		}
		if err != nil {
			p.t.Errorf("the peer's write: %v", err)
			return n
		}
		n += k
	}
	return n
}

// fill writes until there is no more room.
func (p *peer) fill() (n int) {
	b := make([]byte, 256<<10)
	for {
		k := p.write(b)
		if n += k; k < len(b) {
			return n
		}
	}
}

// read reads what there is.
func (p *peer) read() {
	for !p.over && p.err == nil && p.readSome(64<<10) {
	}
}

func (p *peer) readSome(size int) bool {
	b := make([]byte, size)
	n, err := p.k.Read(p.fd, b)
	switch {
	case err == syscall.EAGAIN:
		return false
	case err != nil:
		p.err = err
		return false
	case n == 0:
		p.over = true
		return false
	}
	p.got = append(p.got, b[:n]...)
	return true
}

// readUntilOver has the peer read each millisecond until it reads an end or an error, and then calls then.
func (p *peer) readUntilOver(l *Loop, then func()) {
	var tick *Timer
	tick = l.Every(time.Millisecond, func() {
		if p.read(); p.over || p.err != nil {
			tick.Stop()
			then()
		}
	})
}

func (p *peer) closeWrite() {
	if err := p.k.CloseWrite(p.fd); err != nil {
		p.t.Error(err)
	}
}

func (p *peer) close() {
	if p.fd >= 0 {
		_ = p.k.Close(p.fd)
		p.fd = -1
	}
}

// reset has the other end read ECONNRESET.
func (p *peer) reset() {
	_ = p.k.SetOption(p.fd, sys.Linger, 0)
	p.close()
}

// serveUnix is serve at an abstract name, which is the test's.
func serveUnix(t *testing.T, l *Loop, cfg ListenerConfig, h ConnHandler) *Listener {
	t.Helper()
	ln, err := l.ListenUnix("@weir-"+t.Name(), cfg, ListenerHandler{Conn: h})
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// overSockets runs a test over TCP and over a unix socket, on each kernel.
func overSockets(t *testing.T, test func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener)) {
	t.Run("tcp", func(t *testing.T) {
		onEachKernel(t, func(t *testing.T, k *Kernel) { test(t, k, serve) })
	})
	t.Run("unix", func(t *testing.T) {
		onEachKernel(t, func(t *testing.T, k *Kernel) { test(t, k, serveUnix) })
	})
}

// timed is a loop in a bubble with a listener, whose connections have a handler, and a peer.
func timed(t *testing.T, net *memsys.Net, cfg ConnConfig, h ConnHandler) (*Loop, *peer) {
	t.Helper()
	l := loopIn(t, net, Config{})
	ln := serve(t, l, ListenerConfig{Conn: cfg}, h)
	return l, newPeer(t, l, ln, 0)
}

// fullListener is one that takes nobody, and whose backlog is full: to connect takes for ever.
func fullListener(t *testing.T, l *Loop) *Listener {
	t.Helper()
	ln := serve(t, l, ListenerConfig{Backlog: 1}, ConnHandler{})
	ln.Pause()
	for range 2 {
		newPeer(t, l, ln, 0)
	}
	return ln
}

// wantReset fails unless an error says that the peer is gone.
func wantReset(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("OnClose has %v, want a reset", err)
	}
}

// faultErrno has each call of that name answer an errno.
func faultErrno(t *testing.T, call string, errno syscall.Errno) fault.Plan {
	t.Helper()
	return plan(t, fmt.Sprintf("%s=%d", call, int(errno)))
}
