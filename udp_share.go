package weir

import (
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// AdoptUDP takes over a socket that somebody else opened, by a duplicate of its descriptor: fd is borrowed, and
// stays the caller's to close. Of cfg, what can be told to an open socket is told to it, also if an error follows, and
// the rest has to be as it is; GRO is left as it is, too. The socket is taken to be read by others, and so it takes one
// datagram a call, until Sole says otherwise; UDPConfig.Sole says so at once.
//
//   - Errors: *OpError: ENOTSOCK, EAFNOSUPPORT (not an internet socket), EPROTOTYPE (not UDP), EEXIST (the
//     loop has the socket already, by whatever descriptor), EBADF, ErrClosed, ErrUnsupported.
//   - Platforms: Linux.
func (l *Loop) AdoptUDP(fd int, cfg UDPConfig, h UDPHandler) (*UDP, error) {
	fail := func(err error) (*UDP, error) {
		return nil, &OpError{Op: "adopt", Net: "udp", Err: err}
	}
	if l.end.stage() != stageRunning {
		return fail(ErrClosed)
	}
	limits, err := cfg.resolve(l.cfg.Bound)
	if err != nil {
		return fail(err)
	}
	own, d, err := sock.AdoptUDP(l.kernel, fd)
	if err != nil {
		return fail(err)
	}
	closeOwn := func(err error) (*UDP, error) {
		_ = l.kernel.Close(own)
		return fail(err)
	}
	if l.sockets[d.Cookie] != nil && d.Cookie != 0 {
		return closeOwn(fmt.Errorf("descriptor %d: the loop has this socket already: %w", fd, syscall.EEXIST))
	}
	settings := cfg.settings()
	if err := settings.Apply(l.kernel, own, d.Family); err != nil {
		return closeOwn(err)
	}
	u := l.newUDP(own, d.Family, d.Cookie, limits, cfg, h)
	u.shared = !cfg.Sole
	u.learnAdopted()
	if err := u.register(); err != nil {
		return fail(err)
	}
	return u, nil
}

// AdoptUDPFile is AdoptUDP of an open file, which stays the caller's.
func (l *Loop) AdoptUDPFile(f *os.File, cfg UDPConfig, h UDPHandler) (u *UDP, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, &OpError{Op: "adopt", Net: "udp", Err: err}
	}
	if e := raw.Control(func(fd uintptr) { u, err = l.AdoptUDP(int(fd), cfg, h) }); e != nil {
		return nil, &OpError{Op: "adopt", Net: "udp", Err: e}
	}
	return u, err
}

// learnAdopted asks the kernel how the socket stands: who opened it may have told it things.
func (u *UDP) learnAdopted() {
	k := u.loop.kernel
	on := func(o sys.Option) bool {
		v, err := k.GetOption(u.fd, o)
		return err == nil && v != 0
	}
	u.broadcast = on(sys.Broadcast)
	u.joins = on(sys.RecvJoined)
	class := sys.TOS
	if u.family == sys.IPv6 {
		class = sys.TrafficClass
	}
	if v, err := k.GetOption(u.fd, class); err == nil {
		u.class = uint8(max(v, 0))
	}
	u.reports.on = u.reports.on || on(sys.Reports) || u.family == sys.IPv6 && on(sys.Reports6)
	if peer, err := k.RemoteAddr(u.fd); err == nil {
		u.peer = sock.Unmap(peer)
	}
}

// Sole promises that nobody else reads the socket any more: it is read by batches again.
func (u *UDP) Sole() {
	u.shared = false
	u.publish()
}

// Export makes a descriptor of the socket for another process or another part of this one, and returns with
// it, oldest first, the datagrams that were read ahead and will not be delivered here: whoever gets the
// descriptor should get them, too (encoding/gob carries them), adopt it, and have them delivered with Inject,
// before what the kernel has. From here on the socket is shared, and takes one datagram a call, so that nothing is
// read ahead again; Sole ends that.
//
// The descriptor is the caller's, close-on-exec, and so are the datagrams and their payloads. Both ends can go on to
// use the socket; who wants the other to be its only reader closes this one first.
//
//   - Errors: ErrClosed; *OpError: EBUSY where the kernel may hold datagrams that it has joined (GRO), which only
//     a reader that knows of it can tell apart: open the socket with UDPConfig.NoGRO, or use ExportToWeir.
func (u *UDP) Export() (fd int, ahead []Datagram, err error) {
	if u.fd >= 0 && u.joins {
		err := fmt.Errorf("the socket joins datagrams (GRO): open it with UDPConfig.NoGRO, or use ExportToWeir: %w", syscall.EBUSY)
		return -1, nil, u.opError("export", netip.AddrPort{}, err)
	}
	return u.ExportToWeir()
}

// ExportToWeir is Export for a reader that takes the socket with AdoptUDP, which finds out whether datagrams
// may come joined.
func (u *UDP) ExportToWeir() (fd int, ahead []Datagram, err error) {
	if u.fd < 0 {
		return -1, nil, ErrClosed
	}
	fd, err = u.loop.kernel.Duplicate(u.fd)
	if err != nil {
		return -1, nil, u.opError("export", netip.AddrPort{}, err)
	}
	u.shared = true
	ahead = u.takeAhead()
	u.counters.exported.Add(uint64(len(ahead)))
	u.publish()
	return fd, ahead, nil
}

// takeAhead takes out what was received and not delivered, the datagram aside that a callback holds now.
func (u *UDP) takeAhead() (ahead []Datagram) {
	add := func(m *sys.Message) {
		t := batch.Train{Payload: m.Buf, Control: m.Control}
		size := len(t.First())
		for rest := m.Buf; ; rest = rest[size:] {
			size = min(size, len(rest))
			d := u.datagram(m.Addr, m.Flags, &m.Control)
			u.cut(&d, append([]byte(nil), rest[:size]...))
			ahead = append(ahead, d)
			if size == len(rest) {
				return
			}
		}
	}
	kept := &u.kept
	for i := range kept.Trains() {
		t := kept.At(i)
		m := sys.Message{Buf: t.Payload, Addr: t.Addr, Control: t.Control, Flags: t.Flags}
		if i == 0 && u.lent {
			if m.Buf = m.Buf[len(t.First()):]; len(m.Buf) == 0 {
				continue
			}
		}
		add(&m)
	}
	if u.lent {
		kept.KeepFirst()
	} else {
		kept.Clear()
	}
	for i := range u.batch {
		add(&u.batch[i])
	}
	u.batch = nil
	return ahead
}

// mostAhead is more than one Export gives: a batch of trains, and what was kept of another.
const mostAhead = 2 * recvSlots * 64

// Inject has a datagram delivered as if the socket had received it now: one that was read ahead before the
// socket was handed over. It is copied.
//
//   - Errors: ErrClosed; ErrWouldBlock when 4,096 datagrams wait, or as many bytes as a socket may have queued
//     to send; *OpError: EMSGSIZE above 65,535 bytes.
func (u *UDP) Inject(d *Datagram) error {
	switch {
	case u.fd < 0:
		return ErrClosed
	case len(d.Payload) > slotBytes:
		return u.opError("inject", netip.AddrPort{}, syscall.EMSGSIZE)
	case u.kept.Len() >= max(u.limits.sends, mostAhead), u.kept.Len() > 0 && u.kept.Bytes()+len(d.Payload) > u.limits.sendBytes:
		return ErrWouldBlock
	}
	m := sys.Message{Buf: d.Payload, Addr: d.Source, Control: sys.Control{
		Local: d.Local, Interface: uint32(d.Interface), TrafficClass: uint8(d.ECN),
	}}
	if !d.Time.IsZero() {
		m.Control.Time = d.Time.UnixNano()
	}
	if d.Truncated {
		m.Flags = sys.Truncated
	}
	if u.loop.visited != visitor(u) {
		u.keep() // it comes behind what was received before
	}
	u.kept.Push(&m)
	u.counters.injected.Add(1)
	if u.receiving() {
		u.loop.ring.Ready(u.source)
	}
	return nil
}
