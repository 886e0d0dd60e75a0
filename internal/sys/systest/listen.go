package systest

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var listenCases = []assertion{
	{"listen: a listener that nobody connects to is not ready, and has nothing to accept", func(r *rig) {
		for _, l := range []int{r.listener("127.0.0.1:0", 4), r.unixListener(r.path(), 4)} {
			r.becomes(l, 0)
			r.acceptErr(l, syscall.EAGAIN)
		}
	}},
	{"listen: an unbound TCP socket is given a port", func(r *rig) {
		l := r.tcp(addr("127.0.0.1:0"))
		r.must(r.Kernel.Listen(l, 1))
		r.equal(r.local(l).Addr().String(), "0.0.0.0")
		if r.local(l).Port() == 0 {
			r.Fatal("no port")
		}
		r.dial(at("127.0.0.1", r.local(l)))
		r.accept(l)
	}},
	{"listen: an unbound unix socket cannot", func(r *rig) {
		r.want(r.Kernel.Listen(r.unixSocket(sys.UnixStream), 1), syscall.EINVAL)
	}},
	{"listen: a socket of datagrams or with a peer cannot", func(r *rig) {
		r.want(r.Kernel.Listen(r.bound("127.0.0.1:0"), 1), syscall.EOPNOTSUPP)
		r.want(r.Kernel.Listen(r.boundUnix(sys.Unixgram, r.path()), 1), syscall.EOPNOTSUPP)
		r.eachStream(func(a, b int) {
			r.want(r.Kernel.Listen(a, 1), syscall.EINVAL)
			r.want(r.Kernel.Listen(b, 1), syscall.EINVAL)
		})
		r.want(r.Kernel.Listen(1<<20, 1), syscall.EBADF)
	}},
	{"listen: a socket that does not listen has nothing to accept", func(r *rig) {
		a, b := r.tcpPair()
		c, d := r.unixPair()
		bound := r.boundTCP(addr("127.0.0.1:0"))
		for _, fd := range []int{a, b, c, d, bound, r.unixSocket(sys.UnixStream)} {
			r.acceptErr(fd, syscall.EINVAL)
		}
		r.acceptErr(r.bound("127.0.0.1:0"), syscall.EOPNOTSUPP)
		r.acceptErr(r.unixSocket(sys.Unixgram), syscall.EOPNOTSUPP)
		r.acceptErr(1<<20, syscall.EBADF)
	}},
	{"listen: a listener moves no bytes and has no peer", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		r.readErr(l, syscall.ENOTCONN)
		r.writeErr(l, syscall.EPIPE)
		_, err := r.Kernel.RemoteAddr(l)
		r.want(err, syscall.ENOTCONN)
		r.want(r.Kernel.Connect(l, r.local(r.listener("127.0.0.1:0", 1))), syscall.EISCONN)
		r.dial(r.local(l))
		r.accept(l)
	}},
	{"listen: two sockets share a port by rule", func(r *rig) {
		for _, c := range portRules {
			r.portRule(c)
		}
	}},
	{"listen: of two that are bound to a port one may listen, and closing it lets the other", func(r *rig) {
		first := r.boundTCP(addr("127.0.0.1:0"), sys.ReuseAddr)
		second := r.boundTCP(r.local(first), sys.ReuseAddr)
		r.must(r.Kernel.Listen(first, 1))
		r.want(r.Kernel.Listen(second, 1), syscall.EADDRINUSE)
		r.must(r.Kernel.Close(first))
		r.must(r.Kernel.Listen(second, 1))
		r.dial(r.local(second))
		r.accept(second)
	}},
	{"listen: closing a listener frees its port", func(r *rig) {
		l := r.listener("127.0.0.1:0", 1)
		a := r.local(l)
		r.want(r.Kernel.Bind(r.tcp(a), a), syscall.EADDRINUSE)
		r.must(r.Kernel.Close(l))
		r.listener(a.String(), 1)
	}},
	{"listen: a port with connections, or with such as are over, is for ReuseAddr", func(r *rig) {
		for _, client := range []bool{false, true} {
			l := r.listener("127.0.0.1:0", 1, sys.ReuseAddr)
			port := r.local(l)
			a := r.dial(port)
			b := r.accept(l)
			r.must(r.Kernel.Close(l))
			r.want(r.Kernel.Bind(r.tcp(port), port), syscall.EADDRINUSE)
			again := r.listener(port.String(), 1, sys.ReuseAddr)
			r.write(a, "x")
			r.equal(r.read(b, 1), "x")
			r.must(r.Kernel.Close(again))
			if client {
				a, b = b, a
			}
			r.must(r.Kernel.Close(b))
			r.readEnd(a)
			r.must(r.Kernel.Close(a))
			l = r.listener(port.String(), 1, sys.ReuseAddr)
			r.dial(port)
			r.accept(l)
		}
	}},
	{"listen: TCP and UDP ports are apart", func(r *rig) {
		udp, l := r.bound("127.0.0.1:0"), -1
		for range 100 { // others on the machine may have a TCP port of that number
			l = r.tcp(r.local(udp))
			err := r.Kernel.Bind(l, r.local(udp))
			if err == nil {
				break
			}
			r.want(err, syscall.EADDRINUSE)
			udp = r.bound("127.0.0.1:0")
		}
		r.must(r.Kernel.Listen(l, 1))
		r.deliver(r.bound("127.0.0.1:0"), udp, "x")
		r.becomes(l, 0)
		r.dial(r.local(l))
		r.accept(l)
		r.equal(r.recvText(udp), "x")
	}},
	{"listen: ReusePort spreads connections over all that listen", func(r *rig) {
		first := r.listener("127.0.0.1:0", 64, sys.ReusePort)
		second := r.listener(r.local(first).String(), 64, sys.ReusePort)
		const all = 64
		left := map[netip.AddrPort]bool{}
		for range all {
			left[r.local(r.dial(r.local(first)))] = true
		}
		got := map[int]int{}
		r.eventually("each connection comes to one of them", func() bool {
			for _, l := range []int{first, second} {
				for fd, peer, err := r.Kernel.Accept(l); err == nil; fd, peer, err = r.Kernel.Accept(l) {
					if !left[peer] {
						r.Errorf("a connection of %v came", peer)
					}
					delete(left, peer)
					got[l]++
					r.must(r.Kernel.Close(fd))
				}
			}
			return len(left) == 0
		})
		if got[first] == 0 || got[second] == 0 {
			r.Errorf("connections of each: %v", got)
		}
	}},
	{"listen: with ReusePort all that come go to who is left", func(r *rig) {
		first := r.listener("127.0.0.1:0", 64, sys.ReusePort)
		second := r.listener(r.local(first).String(), 64, sys.ReusePort)
		r.must(r.Kernel.Close(first))
		for range 8 {
			r.dial(r.local(second))
			r.accept(second)
		}
	}},
	{"listen: the address decides who gets a connection", func(r *rig) {
		one := r.listener("127.0.0.1:0", 4)
		two := r.listener(at("127.0.0.2", r.local(one)).String(), 4)
		a := r.dial(r.local(two))
		b, peer := r.acceptFrom(two)
		r.equal(peer, r.local(a))
		r.equal(r.local(b), r.local(two))
		r.acceptErr(one, syscall.EAGAIN)
	}},
	{"listen: a wildcard takes what comes to any local address", func(r *rig) {
		l := r.listener("0.0.0.0:0", 4)
		for _, ip := range []string{"127.0.0.1", "127.0.0.2", "127.255.0.9"} {
			a := r.dial(at(ip, r.local(l)))
			b, peer := r.acceptFrom(l)
			r.equal(peer, r.local(a))
			r.equal(r.local(b), at(ip, r.local(l)))
		}
	}},
	{"listen: a dual-stack listener sees IPv4 peers as mapped", func(r *rig) {
		l := r.listener("[::]:0", 4)
		for ip, seen := range map[string]string{"127.0.0.1": "::ffff:127.0.0.1", "::1": "::1"} {
			a := r.dial(at(ip, r.local(l)))
			b, peer := r.acceptFrom(l)
			r.equal(peer, at(seen, r.local(a)))
			remote, err := r.Kernel.RemoteAddr(b)
			r.must(err)
			r.equal(remote, peer)
			r.equal(r.local(b), at(seen, r.local(l)))
			r.write(a, "x")
			r.equal(r.read(b, 1), "x")
		}
	}},
	{"listen: IPv6Only keeps IPv4 out", func(r *rig) {
		l := r.listener("[::]:0", 4, sys.IPv6Only)
		r.refusedConnect(r.connecting(at("127.0.0.1", r.local(l))))
		r.dial(at("::1", r.local(l)))
		r.accept(l)
	}},
	{"listen: a connection to a port that is bound only is refused", func(r *rig) {
		r.refusedConnect(r.connecting(r.nobodyListens()))
	}},
}

// portRule is two TCP sockets at the same port: may the second bind, where the first listens or not?
type portRule struct {
	first, second string
	option        sys.Option
	only          int // 1 or 2: the other one does not set the option
	bound, listen error
}

var portRules = []portRule{
	{first: "127.0.0.1", second: "127.0.0.1", bound: syscall.EADDRINUSE, listen: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReuseAddr, only: 1, bound: syscall.EADDRINUSE, listen: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReuseAddr, only: 2, bound: syscall.EADDRINUSE, listen: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReuseAddr, listen: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReusePort},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReusePort, only: 1, bound: syscall.EADDRINUSE, listen: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.1", option: sys.ReusePort, only: 2, bound: syscall.EADDRINUSE, listen: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "127.0.0.2"},
	{first: "0.0.0.0", second: "127.0.0.1", bound: syscall.EADDRINUSE, listen: syscall.EADDRINUSE},
	{first: "127.0.0.1", second: "0.0.0.0", bound: syscall.EADDRINUSE, listen: syscall.EADDRINUSE},
	{first: "0.0.0.0", second: "127.0.0.1", option: sys.ReuseAddr, listen: syscall.EADDRINUSE},
	{first: "::", second: "0.0.0.0", bound: syscall.EADDRINUSE, listen: syscall.EADDRINUSE},
	{first: "::", second: "0.0.0.0", option: sys.ReuseAddr, listen: syscall.EADDRINUSE},
	{first: "0.0.0.0", second: "::1"},
	{first: "127.0.0.1", second: "::ffff:127.0.0.1", bound: syscall.EADDRINUSE, listen: syscall.EADDRINUSE},
}

func (r *rig) portRule(c portRule) {
	r.Helper()
	for listens, want := range map[bool]error{false: c.bound, true: c.listen} {
		first, second := r.tcp(at(c.first, none)), r.tcp(at(c.second, none))
		for i, fd := range []int{first, second} {
			if c.option != 0 && c.only != 2-i {
				r.turnOn(fd, c.option)
			}
		}
		r.must(r.Kernel.Bind(first, at(c.first, none)))
		if listens {
			r.must(r.Kernel.Listen(first, 1))
		}
		if err := r.Kernel.Bind(second, at(c.second, r.local(first))); err != want {
			r.Errorf("%+v, the first listens: %t: error is %v", c, listens, err)
		}
	}
}

// refusedConnect takes the error of a Connect that nobody listened to.
func (r *rig) refusedConnect(fd int) {
	r.Helper()
	r.await(fd, poll.Failed)
	r.pendingError(fd, syscall.ECONNREFUSED)
}

// nobodyListens is an address that refuses connections. It is bound, lest the socket that connects be given the same
// port: it would be connected to itself.
func (r *rig) nobodyListens() netip.AddrPort {
	r.Helper()
	return r.local(r.boundTCP(addr("127.0.0.1:0")))
}
