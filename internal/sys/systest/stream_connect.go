package systest

import (
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var streamConnectCases = []assertion{
	{"stream connect: begins, and is over when the socket is writable", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		fd := r.tcp(addr("127.0.0.1:0"))
		r.want(r.Kernel.Connect(fd, r.local(l)), syscall.EINPROGRESS)
		r.becomes(fd, poll.Writable)
		r.pendingError(fd, 0)
		remote, err := r.Kernel.RemoteAddr(fd)
		r.must(err)
		r.equal(remote, r.local(l))
		r.equal(r.local(fd).Addr().String(), "127.0.0.1")
		_, peer := r.acceptFrom(l)
		r.equal(peer, r.local(fd))
	}},
	{"stream connect: a Wait ends when it is over", func(r *rig) {
		p, l := r.poller(), r.listener("127.0.0.1:0", 4)
		fd := r.connecting(r.local(l))
		r.must(p.Add(fd, poll.Write, 1))
		r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.Writable})
	}},
	{"stream connect: keeps the address of Bind", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		fd := r.boundTCP(addr("127.0.0.3:0"))
		was := r.local(fd)
		r.begin(fd, r.local(l))
		r.finish(fd)
		r.equal(r.local(fd), was)
		_, peer := r.acceptFrom(l)
		r.equal(peer, was)
	}},
	{"stream connect: a socket with a peer has one for good", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		a, b := r.tcpPair()
		r.want(r.Kernel.Connect(b, r.local(l)), syscall.EISCONN)
		r.must(r.Kernel.Connect(a, r.local(l))) // tells how the first one went, once
		r.want(r.Kernel.Connect(a, r.local(l)), syscall.EISCONN)
		r.want(r.Kernel.Bind(b, addr("127.0.0.1:0")), syscall.EINVAL)
		r.write(a, "x")
		r.equal(r.read(b, 1), "x")
	}},
	{"stream connect: to the unspecified address is to this machine", func(r *rig) {
		for local, dest := range map[string]string{"127.0.0.1": "0.0.0.0", "::1": "::"} {
			l := r.listener(at(local, none).String(), 4)
			fd := r.dial(at(dest, r.local(l)))
			remote, err := r.Kernel.RemoteAddr(fd)
			r.must(err)
			r.equal(remote, r.local(l))
		}
	}},
	{"stream connect: IPv4 from an IPv6 socket shows mapped addresses", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		fd := r.tcp(addr("[::]:0"))
		r.want(r.Kernel.Connect(fd, r.local(l)), syscall.EINVAL) // unmapped, as UDP alone takes it
		r.begin(fd, at("::ffff:127.0.0.1", r.local(l)))
		r.finish(fd)
		remote, err := r.Kernel.RemoteAddr(fd)
		r.must(err)
		r.equal(remote, at("::ffff:127.0.0.1", r.local(l)))
		_, peer := r.acceptFrom(l)
		r.equal(peer, at("127.0.0.1", r.local(fd)))
	}},
	{"stream connect: an address of the wrong family is refused", func(r *rig) {
		r.want(r.Kernel.Connect(r.tcp(addr("127.0.0.1:0")), addr("[::1]:9")), syscall.EAFNOSUPPORT)
		only := r.tcp(addr("[::]:0"))
		r.setOption(only, sys.IPv6Only, 1)
		r.want(r.Kernel.Connect(only, addr("127.0.0.1:9")), syscall.EINVAL)
		r.want(r.Kernel.Connect(only, addr("[::ffff:127.0.0.1]:9")), syscall.ENETUNREACH)
		r.want(r.Kernel.Connect(1<<20, addr("127.0.0.1:9")), syscall.EBADF)
	}},
	{"stream connect: where nobody listens, SocketError says so once", func(r *rig) {
		fd := r.tcp(addr("127.0.0.1:0"))
		r.want(r.Kernel.Connect(fd, r.nobodyListens()), syscall.EINPROGRESS)
		r.becomes(fd, everything)
		r.pendingError(fd, syscall.ECONNREFUSED)
		r.becomes(fd, over)
		r.pendingError(fd, 0)
		r.readEnd(fd)
		r.writeErr(fd, syscall.EPIPE)
		r.want(r.Kernel.CloseWrite(fd), syscall.ENOTCONN)
		_, err := r.Kernel.RemoteAddr(fd)
		r.want(err, syscall.ENOTCONN)
	}},
	{"stream connect: where nobody listens, Read or Write says so once too", func(r *rig) {
		fd := r.connecting(r.nobodyListens())
		r.await(fd, poll.Failed)
		r.readErr(fd, syscall.ECONNREFUSED)
		r.readEnd(fd)
		r.pendingError(fd, 0)

		fd = r.connecting(r.nobodyListens())
		r.await(fd, poll.Failed)
		r.writeErr(fd, syscall.ECONNREFUSED)
		r.writeErr(fd, syscall.EPIPE)
		r.pendingError(fd, 0)
	}},
	{"stream connect: a socket without a peer is writable and hung up, and moves nothing", func(r *rig) {
		for _, fd := range []int{r.tcp(addr("127.0.0.1:0")), r.tcp(addr("[::1]:0")), r.boundTCP(addr("127.0.0.1:0"))} {
			r.becomes(fd, poll.Writable|poll.HungUp)
			r.readErr(fd, syscall.ENOTCONN)
			r.writeErr(fd, syscall.EPIPE)
			r.want(r.Kernel.CloseWrite(fd), syscall.ENOTCONN)
			r.pendingError(fd, 0)
		}
		fd := r.unixSocket(sys.UnixStream)
		r.becomes(fd, poll.Writable|poll.HungUp)
		r.readErr(fd, syscall.EINVAL)
		r.writeErr(fd, syscall.ENOTCONN)
	}},
	{"stream connect: closing a socket that is connecting gives the connection up", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		r.must(r.Kernel.Close(r.connecting(r.local(l))))
		fd := r.dial(r.local(l))
		r.eventually("the one that stayed comes", func() bool {
			_, peer, err := r.Kernel.Accept(l)
			return err == nil && peer == r.local(fd)
		})
	}},
	{"stream connect: a socket may connect to itself", func(r *rig) {
		fd := r.boundTCP(addr("127.0.0.1:0"))
		r.begin(fd, r.local(fd))
		r.finish(fd)
		remote, err := r.Kernel.RemoteAddr(fd)
		r.must(err)
		r.equal(remote, r.local(fd))
		r.write(fd, "echo")
		r.equal(r.read(fd, 4), "echo")
		r.must(r.Kernel.CloseWrite(fd))
		r.readEnd(fd)
	}},
	{"stream: a descriptor tells its family, its kind and whether it listens", func(r *rig) {
		a, b := r.tcpPair()
		c, d := r.unixPair()
		cookies := map[uint64]bool{}
		for _, w := range []struct {
			fd      int
			family  sys.Family
			kind    sys.Kind
			listens bool
		}{
			{a, sys.IPv4, sys.TCP, false}, {b, sys.IPv4, sys.TCP, false},
			{c, sys.UnixFamily, sys.UnixStream, false}, {d, sys.UnixFamily, sys.UnixStream, false},
			{r.tcp(addr("[::1]:0")), sys.IPv6, sys.TCP, false},
			{r.boundTCP(addr("127.0.0.1:0")), sys.IPv4, sys.TCP, false},
			{r.listener("127.0.0.1:0", 1), sys.IPv4, sys.TCP, true},
			{r.unixListener(r.path(), 1), sys.UnixFamily, sys.UnixStream, true},
			{r.unixSocket(sys.Unixgram), sys.UnixFamily, sys.Unixgram, false},
			{r.bound("127.0.0.1:0"), sys.IPv4, sys.UDP, false},
		} {
			got := r.describe(w.fd)
			if got.Cookie == 0 || cookies[got.Cookie] {
				r.Errorf("the cookie is %d, and others are %v", got.Cookie, cookies)
			}
			cookies[got.Cookie] = true
			r.equal(got, sys.Description{Family: w.family, Kind: w.kind, Listening: w.listens, Cookie: got.Cookie})
			r.equal(r.describe(r.duplicate(w.fd)), got)
		}
	}},
	{"stream: a family has its own kinds", func(r *rig) {
		for family, kinds := range map[sys.Family][]sys.Kind{
			sys.IPv4:       {sys.UnixStream, sys.Unixgram},
			sys.IPv6:       {sys.UnixStream, sys.Unixgram},
			sys.UnixFamily: {sys.UDP, sys.TCP, 99},
		} {
			for _, kind := range kinds {
				if _, err := r.Kernel.Socket(family, kind); err != syscall.EPROTONOSUPPORT {
					r.Errorf("family %d, kind %d: error is %v", family, kind, err)
				}
			}
		}
	}},
	{"stream: Unblock leaves one that does not wait as it is", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.must(r.Kernel.Unblock(a))
			r.readErr(a, syscall.EAGAIN)
			r.write(b, "x")
			r.equal(r.read(a, 1), "x")
		})
		r.want(r.Kernel.Unblock(1<<20), syscall.EBADF)
	}},
	{"stream: every call on an unknown descriptor answers EBADF", func(r *rig) {
		const fd = 1 << 20
		k := r.Kernel
		r.readErr(fd, syscall.EBADF)
		r.writeErr(fd, syscall.EBADF)
		r.want(k.CloseWrite(fd), syscall.EBADF)
		_, err := k.Info(fd)
		r.want(err, syscall.EBADF)
		_, err = k.SendFile(fd, r.file("x"), 0, 1, false)
		r.want(err, syscall.EBADF)
		r.want(k.BindUnix(fd, r.path()), syscall.EBADF)
		r.want(k.ConnectUnix(fd, r.path()), syscall.EBADF)
		_, err = k.LocalUnix(fd)
		r.want(err, syscall.EBADF)
		_, err = k.RemoteUnix(fd)
		r.want(err, syscall.EBADF)
		r.sendUnixErr(fd, "", syscall.EBADF)
		r.recvUnixErr(fd, syscall.EBADF)
		_, err = k.WriteFiles(fd, vector("x"), nil)
		r.want(err, syscall.EBADF)
		_, err = k.ReadFiles(fd, make([]byte, 1), sys.NewFiles(1))
		r.want(err, syscall.EBADF)
	}},
}
