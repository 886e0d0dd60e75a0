package systest

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

var addressCases = []assertion{
	{"address: IPv4 and back", func(r *rig) {
		r.roundTrip(r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0"), "127.0.0.1", "127.0.0.1")
	}},
	{"address: IPv6 and back", func(r *rig) {
		r.roundTrip(r.bound("[::1]:0"), r.bound("[::1]:0"), "::1", "::1")
	}},
	{"address: a dual-stack socket sees IPv4 peers as mapped", func(r *rig) {
		r.roundTrip(r.bound("127.0.0.1:0"), r.bound("[::]:0"), "127.0.0.1", "::ffff:127.0.0.1")
	}},
	{"address: a dual-stack socket may send to IPv4 unmapped", func(r *rig) {
		from, to := r.bound("[::]:0"), r.bound("127.0.0.1:0")
		r.send(from, "x", r.local(to))
		r.equal(r.recv(to).Addr, at("127.0.0.1", r.local(from)))
	}},
	{"address: a dual-stack socket talks to IPv6 too", func(r *rig) {
		r.roundTrip(r.bound("[::1]:0"), r.bound("[::]:0"), "::1", "::1")
	}},
	{"address: a wildcard receives for every local address and answers from 127.0.0.1", func(r *rig) {
		wild := r.bound("0.0.0.0:0")
		for _, ip := range []string{"127.0.0.1", "127.0.0.2", "127.255.0.9"} {
			from := r.bound(ip + ":0")
			r.send(from, ip, at(ip, r.local(wild)))
			m := r.recv(wild)
			r.equal(string(m.Buf), ip)
			r.equal(m.Addr, r.local(from))
			r.send(wild, "back", m.Addr)
			r.equal(r.recv(from).Addr, at("127.0.0.1", r.local(wild)))
		}
	}},
	{"address: the unspecified destination is this machine", func(r *rig) {
		v4, v6, dual := r.bound("127.0.0.1:0"), r.bound("[::1]:0"), r.bound("[::]:0")
		r.send(v4, "4", at("0.0.0.0", r.local(v4)))
		r.equal(r.recv(v4).Addr, r.local(v4))
		r.send(v6, "6", at("::", r.local(v6)))
		r.equal(r.recv(v6).Addr, r.local(v6))
		r.send(dual, "mapped", at("::ffff:0.0.0.0", r.local(v4)))
		r.equal(r.recvText(v4), "mapped")
	}},
	{"address: a zone on an address that needs none is ignored", func(r *rig) {
		from, to := r.bound("[::1]:0"), r.bound("[::1]:0")
		r.send(from, "x", at("::1%1", r.local(to)))
		r.equal(r.recv(to).Addr, r.local(from))
	}},
	{"address: a datagram for another local address does not come", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.send(from, "stray", at("127.0.0.2", r.local(to)))
		r.deliver(from, to, "meant")
		r.equal(r.recvText(to), "meant")
		r.silent(to)
	}},
	{"address: destinations that a socket cannot have are refused", func(r *rig) {
		for _, c := range refusedDestinations {
			fd := r.socket(familyOf(addr(c.local)))
			if c.v6only {
				r.setOption(fd, sys.IPv6Only, 1)
			}
			r.must(r.Kernel.Bind(fd, addr(c.local)))
			if err := r.trySend(fd, []byte("x"), addr(c.dest)); err != c.want {
				r.Errorf("send %+v: error is %v", c, err)
			}
		}
	}},
}

var refusedDestinations = []struct {
	local, dest string
	v6only      bool
	want        error
}{
	{local: "127.0.0.1:0", dest: "[::1]:9", want: syscall.EAFNOSUPPORT},
	{local: "127.0.0.1:0", dest: "[::ffff:127.0.0.1]:9", want: syscall.EAFNOSUPPORT},
	{local: "127.0.0.1:0", dest: "127.0.0.1:0", want: syscall.EINVAL},
	{local: "127.0.0.1:0", dest: "203.0.113.1:9", want: syscall.EINVAL},
	{local: "[::]:0", dest: "[::1]:0", want: syscall.EINVAL},
	{local: "[::]:0", dest: "[::ffff:127.0.0.1]:0", want: syscall.EINVAL},
	{local: "[::1]:0", dest: "127.0.0.1:9", want: syscall.ENETUNREACH},
	{local: "[::1]:0", dest: "[::ffff:127.0.0.1]:9", want: syscall.ENETUNREACH},
	{local: "[::]:0", dest: "127.0.0.1:9", v6only: true, want: syscall.ENETUNREACH},
	{local: "[::]:0", dest: "[::ffff:127.0.0.1]:9", v6only: true, want: syscall.ENETUNREACH},
	{local: "[::ffff:127.0.0.1]:0", dest: "[::1]:9", want: syscall.EAFNOSUPPORT},
}

// roundTrip sends from a to b, which is reached at an address that a can use, and answers to the
// source as b saw it.
func (r *rig) roundTrip(a, b int, reach, seen string) {
	r.Helper()
	r.send(a, "ping", at(reach, r.local(b)))
	m := r.recv(b)
	r.equal(string(m.Buf), "ping")
	r.equal(m.Addr, at(seen, r.local(a)))
	r.send(b, "pong", m.Addr)
	m = r.recv(a)
	r.equal(string(m.Buf), "pong")
	r.equal(m.Addr, at(reach, r.local(b)))
}
