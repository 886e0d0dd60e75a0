package systest

import (
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var acceptCases = []assertion{
	{"accept: connections come in their order, with both addresses", func(r *rig) {
		l := r.listener("127.0.0.1:0", 8)
		var clients []int
		for range 4 {
			clients = append(clients, r.dial(r.local(l)))
		}
		for _, a := range clients {
			b, peer := r.acceptFrom(l)
			r.equal(peer, r.local(a))
			r.equal(r.local(b), r.local(l))
			remote, err := r.Kernel.RemoteAddr(b)
			r.must(err)
			r.equal(remote, peer)
			remote, err = r.Kernel.RemoteAddr(a)
			r.must(err)
			r.equal(remote, r.local(l))
		}
		r.acceptErr(l, syscall.EAGAIN)
	}},
	{"accept: unix connections come in their order, without addresses", func(r *rig) {
		name := r.path()
		l := r.unixListener(name, 8)
		var clients []int
		for range 4 {
			clients = append(clients, r.unixDial(name))
		}
		for i, a := range clients {
			b, peer := r.acceptFrom(l)
			r.equal(peer, none)
			r.write(a, string(rune('a'+i)))
			r.equal(r.read(b, 1), string(rune('a'+i)))
		}
		r.acceptErr(l, syscall.EAGAIN)
	}},
	{"accept: a listener is readable until its queue is empty", func(r *rig) {
		name := r.path()
		tcp, unix := r.listener("127.0.0.1:0", 8), r.unixListener(name, 8)
		for range 3 {
			r.dial(r.local(tcp))
			r.unixDial(name)
		}
		for _, l := range []int{tcp, unix} {
			p := r.poller()
			r.must(p.Add(l, readWrite, 1))
			for range 3 {
				for range 2 {
					r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.Readable})
				}
				r.accept(l)
			}
			r.quiet(p)
			r.acceptErr(l, syscall.EAGAIN)
		}
	}},
	{"accept: a connection ends a Wait", func(r *rig) {
		name := r.path()
		tcp, unix := r.listener("127.0.0.1:0", 8), r.unixListener(name, 8)
		to := r.local(tcp)
		dial := func(k sys.Kernel, fd int) { _ = k.Connect(fd, to) }
		r.wakes(tcp, poll.Read, poll.Readable, dial, r.tcp(to))
		dial = func(k sys.Kernel, fd int) { _ = k.ConnectUnix(fd, name) }
		r.wakes(unix, poll.Read, poll.Readable, dial, r.unixSocket(sys.UnixStream))
	}},
	{"accept: what is accepted does not wait, and does not listen", func(r *rig) {
		r.eachStream(func(_, b int) {
			r.readErr(b, syscall.EAGAIN)
			r.becomes(b, poll.Writable)
			r.equal(r.describe(b).Listening, false)
		})
	}},
	{"accept: what was sent before is there", func(r *rig) {
		name := r.path()
		tcp, unix := r.listener("127.0.0.1:0", 4), r.unixListener(name, 4)
		for fd, l := range map[int]int{r.dial(r.local(tcp)): tcp, r.unixDial(name): unix} {
			r.write(fd, "early")
			r.equal(r.read(r.accept(l), 5), "early")
		}
	}},
	{"accept: a connection that ended meanwhile is there, with what was sent", func(r *rig) {
		name := r.path()
		tcp, unix := r.listener("127.0.0.1:0", 4), r.unixListener(name, 4)
		for fd, l := range map[int]int{r.dial(r.local(tcp)): tcp, r.unixDial(name): unix} {
			r.write(fd, "last words")
			r.must(r.Kernel.Close(fd))
			b := r.accept(l)
			r.equal(r.read(b, 10), "last words")
			r.readEnd(b)
		}
	}},
	{"accept: a connection that was reset meanwhile is there, with the error", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		a := r.dial(r.local(l))
		r.await(l, poll.Readable)
		r.reset(a)
		time.Sleep(2 * time.Millisecond)
		b := r.accept(l)
		r.becomes(b, everything)
		r.readErr(b, syscall.ECONNRESET)
		r.readEnd(b)
	}},
	{"accept: a connection has the options of its listener", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		options := map[sys.Option]int{
			sys.NoDelay: 1, sys.KeepAlive: 1, sys.KeepIdle: 77, sys.KeepInterval: 33, sys.KeepCount: 4,
			sys.UserTimeout: 5000, sys.Linger: 3,
		}
		for o, v := range options {
			r.setOption(l, o, v)
		}
		a := r.dial(r.local(l))
		b := r.accept(l)
		for o, v := range options {
			r.equal(r.option(b, o), v)
		}
		r.equal(r.option(a, sys.NoDelay), 0)
	}},
}

// wakes asserts that what other does to a descriptor ends a Wait for this one. A kernel may tell of a part first: Linux
// wakes who waits for a unix socket whose peer is closed before it gives back what the peer had not read.
func (r *rig) wakes(fd int, want poll.Interest, ready poll.Ready, other func(k sys.Kernel, fd int), at int) {
	r.Helper()
	p := r.poller()
	r.must(p.Add(fd, want, 7))
	r.quiet(p)
	r.beside(func() {
		time.Sleep(2 * time.Millisecond)
		other(r.Kernel, at)
	}, func() {
		got := r.wait(p, 4, patience)
		if len(got) != 1 || got[0].Token != 7 || got[0].Ready&ready == 0 {
			r.Errorf("got %v, want %s", got, ways(ready))
		}
	})
	r.eventually("the Wait tells "+ways(ready), func() bool {
		got := r.wait(p, 4, patience)
		return len(got) == 1 && got[0].Ready&ready == ready
	})
	r.must(p.Remove(fd))
}
