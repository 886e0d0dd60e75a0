package systest

import (
	"strconv"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

var bindCases = []assertion{
	{"bind: port 0 lets the kernel choose, never the same twice", func(r *rig) {
		a, b := r.local(r.bound("127.0.0.1:0")), r.local(r.bound("127.0.0.1:0"))
		if a.Port() == 0 || b.Port() == 0 || a.Port() == b.Port() {
			r.Fatalf("ports are %d and %d", a.Port(), b.Port())
		}
		r.equal(a.Addr().String(), "127.0.0.1")
	}},
	{"bind: twice is refused", func(r *rig) {
		r.want(r.Kernel.Bind(r.bound("127.0.0.1:0"), addr("127.0.0.1:0")), syscall.EINVAL)
	}},
	{"bind: an address of the wrong family is refused", func(r *rig) {
		r.want(r.Kernel.Bind(r.socket(sys.IPv4), addr("[::1]:0")), syscall.EAFNOSUPPORT)
		r.want(r.Kernel.Bind(r.socket(sys.IPv4), addr("[::ffff:127.0.0.1]:0")), syscall.EAFNOSUPPORT)
		r.want(r.Kernel.Bind(r.socket(sys.IPv6), addr("127.0.0.1:0")), syscall.EINVAL)
	}},
	{"bind: an address of another machine is refused", func(r *rig) {
		for _, a := range []string{"203.0.113.1:0", "[2001:db8::1]:0", "[::ffff:203.0.113.1]:0"} {
			a := addr(a)
			r.want(r.Kernel.Bind(r.socket(familyOf(a)), a), syscall.EADDRNOTAVAIL)
		}
	}},
	{"bind: a link-local address without a zone is refused", func(r *rig) {
		r.want(r.Kernel.Bind(r.socket(sys.IPv6), addr("[fe80::1]:0")), syscall.EINVAL)
	}},
	{"bind: a zone on any other address is ignored", func(r *rig) {
		r.equal(r.local(r.bound("[::1%1]:0")).Addr().String(), "::1")
	}},
	{"bind: a mapped address makes an IPv6 socket an IPv4 one", func(r *rig) {
		fd, from := r.bound("[::ffff:127.0.0.1]:0"), r.bound("127.0.0.1:0")
		r.equal(r.local(fd).Addr().String(), "::ffff:127.0.0.1")
		r.send(from, "x", at("127.0.0.1", r.local(fd)))
		r.equal(r.recv(fd).Addr, at("::ffff:127.0.0.1", r.local(from)))
		r.want(r.trySend(fd, nil, addr("[::1]:9")), syscall.EAFNOSUPPORT)
	}},
	{"bind: two sockets share a port by rule", func(r *rig) {
		for _, c := range sharing {
			r.share(c)
		}
	}},
	{"bind: ReusePort keeps a flow with one socket and spreads flows over all", func(r *rig) {
		first := r.socket(sys.IPv4)
		r.setOption(first, sys.ReusePort, 1)
		r.must(r.Kernel.Bind(first, addr("127.0.0.1:0")))
		second := r.socket(sys.IPv4)
		r.setOption(second, sys.ReusePort, 1)
		r.must(r.Kernel.Bind(second, r.local(first)))

		for range 64 {
			from := r.bound("127.0.0.1:0")
			for i := range 3 {
				r.send(from, strconv.Itoa(i), r.local(first))
			}
		}
		perFlow := map[string]int{}
		total := [2]int{}
		r.eventually("192 datagrams arrive", func() bool {
			for i, fd := range []int{first, second} {
				b := sys.NewRecvBatch(256, 16)
				n, _ := r.Kernel.Recv(fd, b, 256)
				total[i] += n
				for _, m := range b.Msgs[:n] {
					perFlow[strconv.Itoa(i)+m.Addr.String()]++
				}
			}
			return total[0]+total[1] == 192
		})
		for flow, n := range perFlow {
			if n != 3 {
				r.Errorf("flow %s came to this socket %d times of 3", flow, n)
			}
		}
		if total[0] == 0 || total[1] == 0 {
			r.Errorf("datagrams per socket: %v", total)
		}
	}},
}

// shareRule is two sockets at the same port: may the second bind, and who of them gets a datagram for
// 127.0.0.1?
type shareRule struct {
	first, second string // the addresses
	option        sys.Option
	only          int  // 1 or 2: the other one does not set the option
	v6only        bool // of the second
	want          error
	secondGets    bool
}

var sharing = []shareRule{
	{first: "127.0.0.1", second: "127.0.0.1", want: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReuseAddr, only: 1, want: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReuseAddr, only: 2, want: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReusePort, only: 1, want: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReusePort, only: 2, want: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReuseAddr, secondGets: true},
	{first: "127.0.0.1", second: "127.0.0.2"},
	{first: "0.0.0.0", second: "127.0.0.1", want: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "0.0.0.0", want: syscall.EADDRINUSE},
	{first: "0.0.0.0", second: "127.0.0.1", option: sys.ReuseAddr, secondGets: true},
	{first: "127.0.0.1", second: "0.0.0.0", option: sys.ReuseAddr},
	{first: "0.0.0.0", second: "0.0.0.0", option: sys.ReuseAddr, secondGets: true},
	{first: "0.0.0.0", second: "::", want: syscall.EADDRINUSE},
	{first: "0.0.0.0", second: "::", v6only: true},
	{first: "0.0.0.0", second: "::", option: sys.ReuseAddr},
	{first: "::", second: "0.0.0.0", want: syscall.EADDRINUSE},
	{first: "::", second: "0.0.0.0", option: sys.ReuseAddr, secondGets: true},
	{first: "::", second: "127.0.0.1", want: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "::", want: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "::1"},
	{first: "127.0.0.1", second: "::ffff:127.0.0.1", want: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "::ffff:127.0.0.2"},
}

func (r *rig) share(c shareRule) {
	r.Helper()
	first := r.socket(familyOf(at(c.first, addr("0.0.0.0:0"))))
	if c.option != 0 && c.only != 2 {
		r.setOption(first, c.option, 1)
	}
	r.must(r.Kernel.Bind(first, at(c.first, addr("0.0.0.0:0"))))
	port := r.local(first)

	second := r.socket(familyOf(at(c.second, port)))
	if c.option != 0 && c.only != 1 {
		r.setOption(second, c.option, 1)
	}
	if c.v6only {
		r.setOption(second, sys.IPv6Only, 1)
	}
	if err := r.Kernel.Bind(second, at(c.second, port)); err != c.want {
		r.Errorf("%+v: error is %v", c, err)
		return
	}
	if c.want != nil {
		return
	}
	winner, loser := first, second
	if c.secondGets {
		winner, loser = second, first
	}
	from := r.bound("127.0.0.1:0")
	r.send(from, "x", at("127.0.0.1", port))
	r.eventually("somebody gets it", func() bool {
		return r.memInfo(first).RecvQueued+r.memInfo(second).RecvQueued > 0
	})
	if r.memInfo(winner).RecvQueued == 0 || r.memInfo(loser).RecvQueued != 0 {
		r.Errorf("%+v: the other one got it", c)
	}
}
