package systest

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

var streamOptionCases = []assertion{
	{"stream option: flags are off, and on once set", func(r *rig) {
		for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
			fd := r.tcp(addr(ip))
			for _, o := range []sys.Option{sys.NoDelay, sys.KeepAlive, sys.ReuseAddr, sys.ReusePort} {
				r.equal(r.option(fd, o), 0)
				r.setOption(fd, o, 5)
				r.equal(r.option(fd, o), 1)
				r.setOption(fd, o, 0)
				r.equal(r.option(fd, o), 0)
			}
		}
	}},
	{"stream option: a number is kept, and others are refused", func(r *rig) {
		for _, c := range streamNumbers {
			for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
				fd := r.tcp(addr(ip))
				if initial := r.option(fd, c.option); c.initial != systems && initial != c.initial {
					r.Errorf("option %d is %d at first, want %d", c.option, initial, c.initial)
				}
				for _, v := range c.good {
					r.setOption(fd, c.option, v)
					r.equal(r.option(fd, c.option), v)
				}
				for _, v := range c.bad {
					if err := r.Kernel.SetOption(fd, c.option, v); err != syscall.EINVAL {
						r.Errorf("option %d set to %d: error is %v", c.option, v, err)
					}
				}
				r.equal(r.option(fd, c.option), c.good[len(c.good)-1])
			}
		}
	}},
	{"stream option: Linger is off, and any number of seconds once set", func(r *rig) {
		a, b := r.tcpPair()
		c, _ := r.unixPair()
		for _, fd := range []int{a, b, c, r.tcp(addr("127.0.0.1:0"))} {
			r.equal(r.option(fd, sys.Linger), -1)
			for _, v := range []int{0, 1, 60, -1, 0} {
				r.setOption(fd, sys.Linger, v)
				r.equal(r.option(fd, sys.Linger), v)
			}
		}
	}},
	{"stream option: DeferAccept is off, and no less than was asked for", func(r *rig) {
		l := r.listener("127.0.0.1:0", 1)
		r.equal(r.option(l, sys.DeferAccept), 0)
		for _, v := range []int{1, 5, 30} {
			r.setOption(l, sys.DeferAccept, v)
			if got := r.option(l, sys.DeferAccept); got < v || got > 2*v {
				r.Errorf("%d seconds read back as %d", v, got)
			}
		}
		r.setOption(l, sys.DeferAccept, 0)
		r.equal(r.option(l, sys.DeferAccept), 0)
	}},
	{"stream option: those of TCP are for connections too, at both ends", func(r *rig) {
		a, b := r.tcpPair()
		for _, fd := range []int{a, b} {
			for o, v := range map[sys.Option]int{
				sys.NoDelay: 1, sys.KeepAlive: 1, sys.KeepIdle: 30, sys.KeepInterval: 5, sys.KeepCount: 3,
				sys.UserTimeout: 10_000, sys.NotSentLowAt: 16 << 10,
			} {
				r.setOption(fd, o, v)
				r.equal(r.option(fd, o), v)
			}
			if size := r.option(fd, sys.MaxSegment); size < 88 {
				r.Errorf("segments of %d bytes", size)
			}
		}
		r.write(a, "x")
		r.equal(r.read(b, 1), "x")
	}},
	{"stream option: buffers are doubled, as those of datagrams", func(r *rig) {
		a, b := r.tcpPair()
		c, d := r.unixPair()
		for _, fd := range []int{a, b, c, d} {
			for _, o := range []sys.Option{sys.RecvBuffer, sys.SendBuffer} {
				r.setOption(fd, o, 100_000)
				r.equal(r.option(fd, o), 200_000)
			}
		}
	}},
	{"stream option: what is no TCP socket knows none of TCP's", func(r *rig) {
		c, _ := r.unixPair()
		for fd, want := range map[int]error{
			r.bound("127.0.0.1:0"): syscall.ENOPROTOOPT, c: syscall.EOPNOTSUPP, r.unixSocket(sys.Unixgram): syscall.EOPNOTSUPP,
		} {
			for _, o := range []sys.Option{
				sys.NoDelay, sys.KeepIdle, sys.KeepInterval, sys.KeepCount, sys.UserTimeout, sys.DeferAccept, sys.NotSentLowAt, sys.MaxSegment,
			} {
				if err := r.Kernel.SetOption(fd, o, 1); err != want {
					r.Errorf("option %d: error is %v, want %v", o, err, want)
				}
				if _, err := r.Kernel.GetOption(fd, o); err != syscall.EOPNOTSUPP {
					r.Errorf("option %d can be read: error is %v", o, err)
				}
			}
		}
	}},
	{"info: counts the bytes of both directions", func(r *rig) {
		a, b := r.tcpPair()
		r.equal(r.info(a).BytesReceived, uint64(0))
		const size = 300_000
		r.pump(a, b, 1, size)
		r.pump(b, a, 1, size/3)
		for fd, w := range map[int]struct{ sent, got uint64 }{a: {size, size / 3}, b: {size / 3, size}} {
			r.equal(r.info(fd).BytesReceived, w.got)
			r.eventually("all is acknowledged", func() bool {
				// The SYN may count as one.
				acked := r.info(fd).BytesAcked
				return acked == w.sent || acked == w.sent+1
			})
			r.equal(r.info(fd).NotSentBytes, 0)
		}
	}},
	{"info: tells what waits for room at the peer", func(r *rig) {
		a, b := r.tcpPair()
		sent := r.fill(a)
		if n := r.info(a).NotSentBytes; n <= 0 || n >= sent {
			r.Errorf("of %d bytes %d are not sent", sent, n)
		}
		r.equal(r.drain(b), sent)
		r.eventually("all is sent", func() bool { return r.info(a).NotSentBytes == 0 })
	}},
	{"info: tells of a connection that it has segments and a window", func(r *rig) {
		a, b := r.tcpPair()
		r.pump(a, b, 1, 100_000)
		i := r.info(a)
		if i.SendMSS <= 0 || i.CongestionWindow <= 0 || i.RTT < 0 || i.Lost != 0 {
			r.Errorf("it is %+v", i)
		}
	}},
	{"info: is of any TCP socket, and of no other", func(r *rig) {
		a, b := r.tcpPair()
		r.reset(a)
		r.becomes(b, everything)
		for _, fd := range []int{b, r.tcp(addr("127.0.0.1:0")), r.tcp(addr("[::1]:0")), r.listener("127.0.0.1:0", 1)} {
			r.info(fd)
		}
		r.readErr(b, syscall.ECONNRESET)
		c, _ := r.unixPair()
		for _, fd := range []int{r.bound("127.0.0.1:0"), c, r.unixSocket(sys.Unixgram)} {
			i, err := r.Kernel.Info(fd)
			if err != syscall.EOPNOTSUPP && err != syscall.ENOPROTOOPT {
				r.Errorf("error is %v", err)
			}
			r.equal(i, sys.TCPInfo{})
		}
	}},
}

// streamNumbers are the options of TCP that keep a number.
var streamNumbers = []struct {
	option    sys.Option
	initial   int
	good, bad []int
}{
	{sys.KeepIdle, systems, []int{1, 60, 32767}, []int{-1, 0, 32768}},
	{sys.KeepInterval, systems, []int{1, 60, 32767}, []int{-1, 0, 32768}},
	{sys.KeepCount, systems, []int{1, 60, 127}, []int{-1, 0, 128}},
	{sys.UserTimeout, 0, []int{1, 30_000, 0}, []int{-1}},
	{sys.NotSentLowAt, 0, []int{1, 16384, 0}, nil},
	{sys.MaxSegment, systems, []int{88, 1000, 1460}, []int{-1, 87, 32768}},
}

func (r *rig) info(fd int) sys.TCPInfo {
	r.Helper()
	i, err := r.Kernel.Info(fd)
	r.must(err)
	return i
}
