package systest

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// patience is how long a case waits for what must come. It is a failure to use it up.
const patience = 10 * time.Second

// rig is a test with a backend at hand. What it makes it also closes.
type rig struct {
	*testing.T
	poll.Backend
}

func newRig(t *testing.T, b poll.Backend) *rig {
	k := &closingKernel{Kernel: b.Kernel, open: map[int]bool{}}
	b.Kernel = k
	t.Cleanup(k.closeAll)
	return &rig{t, b}
}

// closingKernel knows which descriptors a case has open. Closing one that the case has closed itself could hit what
// the process has opened since under its number, such as the runtime's poller.
type closingKernel struct {
	sys.Kernel
	open map[int]bool
}

func (k *closingKernel) Socket(f sys.Family, kind sys.Kind) (int, error) {
	fd, err := k.Kernel.Socket(f, kind)
	return k.opened(fd, err)
}

func (k *closingKernel) Duplicate(from int) (int, error) {
	fd, err := k.Kernel.Duplicate(from)
	return k.opened(fd, err)
}

func (k *closingKernel) Accept(listener int) (int, netip.AddrPort, error) {
	fd, peer, err := k.Kernel.Accept(listener)
	fd, err = k.opened(fd, err)
	return fd, peer, err
}

func (k *closingKernel) ReadFiles(fd int, b []byte, f *sys.Files) (int, error) {
	n, err := k.Kernel.ReadFiles(fd, b, f)
	for _, received := range f.FDs {
		k.open[received] = true
	}
	return n, err
}

func (k *closingKernel) opened(fd int, err error) (int, error) {
	if err == nil {
		k.open[fd] = true
	}
	return fd, err
}

func (k *closingKernel) Close(fd int) error {
	delete(k.open, fd)
	return k.Kernel.Close(fd)
}

func (k *closingKernel) closeAll() {
	for fd := range k.open {
		_ = k.Kernel.Close(fd)
	}
}

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// at is a's port at another address.
func at(ip string, a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(ip), a.Port())
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) want(err error, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Fatalf("error is %v, want %v", err, want)
	}
}

func (r *rig) equal(got, want any) {
	r.Helper()
	if got != want {
		r.Fatalf("got %v, want %v", got, want)
	}
}

func (r *rig) socket(f sys.Family) int {
	r.Helper()
	fd, err := r.Kernel.Socket(f, sys.UDP)
	if f == sys.IPv6 && errors.Is(err, syscall.EAFNOSUPPORT) {
		r.Skip("no IPv6 here")
	}
	r.must(err)
	return fd
}

func familyOf(a netip.AddrPort) sys.Family {
	if a.Addr().Is4() {
		return sys.IPv4
	}
	return sys.IPv6
}

// bound makes a socket with a local address.
func (r *rig) bound(local string) int {
	r.Helper()
	a := addr(local)
	fd := r.socket(familyOf(a))
	err := r.Kernel.Bind(fd, a)
	if a.Addr() == netip.IPv6Loopback() && errors.Is(err, syscall.EADDRNOTAVAIL) {
		r.Skip("no IPv6 on the loopback here")
	}
	r.must(err)
	return fd
}

// connected makes an IPv4 socket with a peer.
func (r *rig) connected(to netip.AddrPort) int {
	r.Helper()
	fd := r.bound("127.0.0.1:0")
	r.must(r.Kernel.Connect(fd, to))
	return fd
}

func (r *rig) local(fd int) netip.AddrPort {
	r.Helper()
	a, err := r.Kernel.LocalAddr(fd)
	r.must(err)
	return a
}

// deadPort is an address at which nobody listens. Its socket takes from itself alone, and keeps the port from other
// processes, which would be given one that is free.
func (r *rig) deadPort() netip.AddrPort {
	r.Helper()
	fd := r.bound("127.0.0.1:0")
	a := r.local(fd)
	r.must(r.Kernel.Connect(fd, a))
	return a
}

// freePort is an address that was bound a moment ago.
func (r *rig) freePort() netip.AddrPort {
	r.Helper()
	fd := r.bound("127.0.0.1:0")
	a := r.local(fd)
	r.must(r.Kernel.Close(fd))
	return a
}

func (r *rig) setOption(fd int, o sys.Option, value int) {
	r.Helper()
	r.must(r.Kernel.SetOption(fd, o, value))
}

func (r *rig) option(fd int, o sys.Option) int {
	r.Helper()
	v, err := r.Kernel.GetOption(fd, o)
	r.must(err)
	return v
}

func (r *rig) memInfo(fd int) sys.MemInfo {
	r.Helper()
	m, err := r.Kernel.MemInfo(fd)
	r.must(err)
	return m
}

// trySend sends one datagram; the zero AddrPort goes to the connected peer.
func (r *rig) trySend(fd int, payload []byte, to netip.AddrPort) error {
	r.Helper()
	b := sys.NewSendBatch(1)
	b.Msgs[0] = sys.Message{Buf: payload, Addr: to}
	n, err := r.Kernel.Send(fd, b, 0, 1)
	if (n == 1) != (err == nil) {
		r.Fatalf("Send of one message answers %d, %v", n, err)
	}
	return err
}

func (r *rig) send(fd int, payload string, to netip.AddrPort) {
	r.Helper()
	r.must(r.trySend(fd, []byte(payload), to))
}

// recv waits for a datagram and takes it.
func (r *rig) recv(fd int) sys.Message {
	r.Helper()
	r.await(fd, poll.Readable)
	b := sys.NewRecvBatch(1, 65536)
	n, err := r.Kernel.Recv(fd, b, 1)
	r.must(err)
	r.equal(n, 1)
	return b.Msgs[0]
}

// recvText is recv where the payload alone matters.
func (r *rig) recvText(fd int) string {
	r.Helper()
	return string(r.recv(fd).Buf)
}

// recvErr is a Recv that must fail.
func (r *rig) recvErr(fd int, want error) {
	r.Helper()
	n, err := r.Kernel.Recv(fd, sys.NewRecvBatch(4, 64), 4)
	r.equal(n, 0)
	r.want(err, want)
}

// silent asserts that nothing waits at fd.
func (r *rig) silent(fd int) {
	r.Helper()
	r.recvErr(fd, syscall.EAGAIN)
}

// eventually waits for what a real kernel does in its own time.
func (r *rig) eventually(what string, ok func() bool) {
	r.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.Fatalf("never: %s", what)
		}
	}
}

// deliver sends from one socket to another and waits until the datagram is in its queue.
func (r *rig) deliver(from, to int, payload string) {
	r.Helper()
	r.deliverTo(from, to, payload, r.local(to))
}

// deliverTo is deliver by way of another of the receiver's addresses; the zero AddrPort is the peer's.
func (r *rig) deliverTo(from, to int, payload string, dest netip.AddrPort) {
	r.Helper()
	before := r.memInfo(to).RecvQueued
	r.send(from, payload, dest)
	r.eventually("the datagram arrives", func() bool { return r.memInfo(to).RecvQueued > before })
}
