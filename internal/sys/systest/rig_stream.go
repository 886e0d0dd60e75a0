package systest

import (
	"net/netip"
	"strings"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// tcp makes a TCP socket of the family that the address needs.
func (r *rig) tcp(a netip.AddrPort) int {
	r.Helper()
	r.skipWithout(a)
	fd, err := r.Kernel.Socket(familyOf(a), sys.TCP)
	r.must(err)
	return fd
}

// skipWithout skips the case where it is about IPv6 and there is none.
func (r *rig) skipWithout(a netip.AddrPort) {
	r.Helper()
	if familyOf(a) == sys.IPv6 {
		r.bound("[::1]:0")
	}
}

// boundTCP makes a TCP socket with a local address and these options on.
func (r *rig) boundTCP(local netip.AddrPort, options ...sys.Option) int {
	r.Helper()
	fd := r.tcp(local)
	r.turnOn(fd, options...)
	r.must(r.Kernel.Bind(fd, local))
	return fd
}

// listener makes a TCP socket that listens, with these options on.
func (r *rig) listener(local string, backlog int, options ...sys.Option) int {
	r.Helper()
	fd := r.boundTCP(addr(local), options...)
	r.must(r.Kernel.Listen(fd, backlog))
	return fd
}

// connecting makes a TCP socket that has begun to connect.
func (r *rig) connecting(to netip.AddrPort) int {
	r.Helper()
	fd := r.tcp(to)
	r.begin(fd, to)
	return fd
}

// begin is a Connect, whether it is over at once or not.
func (r *rig) begin(fd int, to netip.AddrPort) {
	r.Helper()
	if err := r.Kernel.Connect(fd, to); err != nil {
		r.want(err, syscall.EINPROGRESS)
	}
}

// dial makes a TCP socket that is connected.
func (r *rig) dial(to netip.AddrPort) int {
	r.Helper()
	fd := r.connecting(to)
	r.finish(fd)
	return fd
}

// finish waits until a Connect is over, and has gone well.
func (r *rig) finish(fd int) {
	r.Helper()
	r.await(fd, poll.Writable)
	r.pendingError(fd, 0)
}

// accept waits for a connection and takes it.
func (r *rig) accept(listener int) int {
	r.Helper()
	fd, _ := r.acceptFrom(listener)
	return fd
}

func (r *rig) acceptFrom(listener int) (int, netip.AddrPort) {
	r.Helper()
	r.await(listener, poll.Readable)
	fd, peer, err := r.Kernel.Accept(listener)
	r.must(err)
	return fd, peer
}

// acceptErr is an Accept that must fail.
func (r *rig) acceptErr(listener int, want error) {
	r.Helper()
	fd, peer, err := r.Kernel.Accept(listener)
	r.want(err, want)
	r.equal(fd, -1)
	r.equal(peer, none)
}

// tcpPair makes a TCP connection: the end that connected, and the end that was accepted.
func (r *rig) tcpPair() (a, b int) {
	r.Helper()
	return r.pairAt("127.0.0.1:0")
}

func (r *rig) pairAt(local string) (a, b int) {
	r.Helper()
	l := r.listener(local, 1)
	a = r.dial(r.local(l))
	b = r.accept(l)
	r.must(r.Kernel.Close(l))
	return a, b
}

// unixPair makes a connection of unix sockets.
func (r *rig) unixPair() (a, b int) {
	r.Helper()
	name := r.path()
	l := r.unixListener(name, 1)
	a = r.unixDial(name)
	b = r.accept(l)
	r.must(r.Kernel.Close(l))
	return a, b
}

// eachStream runs a case on a connection of each kind.
func (r *rig) eachStream(fn func(a, b int)) {
	r.Helper()
	for _, pair := range []func() (int, int){r.tcpPair, r.unixPair} {
		fn(pair())
	}
}

// vector makes a Vector of these buffers.
func vector(bufs ...string) *sys.Vector {
	v := sys.NewVector(len(bufs))
	for _, b := range bufs {
		v.Bufs = append(v.Bufs, []byte(b))
	}
	return v
}

func (r *rig) tryWrite(fd int, bufs ...string) (int, error) {
	r.Helper()
	n, err := r.Kernel.Write(fd, vector(bufs...), false)
	if (n > 0) != (err == nil) || n > len(strings.Join(bufs, "")) {
		r.Fatalf("Write answers %d, %v", n, err)
	}
	return n, err
}

// write is a Write that there must be room for.
func (r *rig) write(fd int, bufs ...string) {
	r.Helper()
	n, err := r.tryWrite(fd, bufs...)
	r.must(err)
	r.equal(n, len(strings.Join(bufs, "")))
}

// writeErr is a Write that must fail.
func (r *rig) writeErr(fd int, want error) {
	r.Helper()
	n, err := r.tryWrite(fd, "refused")
	r.equal(n, 0)
	r.want(err, want)
}

// tryRead is one Read of at most that many bytes.
func (r *rig) tryRead(fd, most int) (string, error) {
	r.Helper()
	b := make([]byte, most)
	n, err := r.Kernel.Read(fd, b)
	if n < 0 || n > most || n > 0 && err != nil {
		r.Fatalf("Read answers %d, %v", n, err)
	}
	return string(b[:n]), err
}

// read waits for that many bytes and takes them.
func (r *rig) read(fd, size int) string {
	r.Helper()
	var text strings.Builder
	for text.Len() < size {
		r.await(fd, poll.Readable)
		s, err := r.tryRead(fd, size-text.Len())
		r.must(err)
		if s == "" {
			r.Fatalf("the stream ends after %d of %d bytes", text.Len(), size)
		}
		text.WriteString(s)
	}
	return text.String()
}

// readErr is a Read that must fail.
func (r *rig) readErr(fd int, want error) {
	r.Helper()
	s, err := r.tryRead(fd, 16)
	r.equal(s, "")
	r.want(err, want)
}

// readEnd waits for the end of the stream, which stays.
func (r *rig) readEnd(fd int) {
	r.Helper()
	for range 3 {
		r.await(fd, poll.Readable)
		s, err := r.tryRead(fd, 16)
		r.must(err)
		r.equal(s, "")
	}
}

// reset closes an end so that the other is reset.
func (r *rig) reset(fd int) {
	r.Helper()
	r.setOption(fd, sys.Linger, 0)
	r.must(r.Kernel.Close(fd))
}
