package systest

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// reportPair is a socket that sends and an address at which peers live, with what the socket calls it.
type reportPair struct{ from, peer, seen string }

var reportPairs = []reportPair{
	{"127.0.0.1:0", "127.0.0.1", "127.0.0.1"},
	{"0.0.0.0:0", "127.0.0.2", "127.0.0.2"},
	{"[::1]:0", "::1", "::1"},
	{"[::]:0", "::1", "::1"},
	{"[::]:0", "127.0.0.1", "::ffff:127.0.0.1"},
}

var reportCases = []assertion{
	{"report: an unconnected socket hears which peer is dead", func(r *rig) {
		for _, c := range reportPairs {
			fd, dead := r.reporting(c.from), r.deadAt(c.peer)
			r.noReports(fd, syscall.EAGAIN)
			r.send(fd, "anybody?", dead)
			r.equal(r.oneReport(fd), sys.Report{
				Errno:    syscall.ECONNREFUSED,
				Origin:   sys.OriginICMP,
				Peer:     at(c.seen, dead),
				Offender: netip.MustParseAddr(c.seen),
			})
			r.noReports(fd, syscall.EAGAIN)
			r.silent(fd) // draining has cleared the pending error
		}
	}},
	{"report: a connected socket hears too", func(r *rig) {
		fd, dead := r.reporting("127.0.0.1:0"), r.deadPort()
		r.must(r.Kernel.Connect(fd, dead))
		r.send(fd, "anybody?", none)
		r.equal(r.oneReport(fd).Peer, dead)
	}},
	{"report: they come in order, and no more than asked", func(r *rig) {
		fd := r.reporting("127.0.0.1:0")
		var dead []netip.AddrPort
		for range 5 {
			dead = append(dead, r.deadPort())
			r.refusedReport(fd, dead[len(dead)-1])
		}
		var got []netip.AddrPort
		for _, c := range []struct{ ask, want int }{{1, 1}, {2, 2}, {8, 2}} {
			list := r.takeReports(fd, c.ask)
			r.equal(len(list), c.want)
			for _, x := range list {
				got = append(got, x.Peer)
			}
		}
		for i, want := range dead {
			r.equal(got[i], want)
		}
		r.noReports(fd, syscall.EAGAIN)
	}},
	{"report: readiness is Failed until the last one is taken", func(r *rig) {
		p, fd := r.poller(), r.reporting("127.0.0.1:0")
		r.must(p.Add(fd, poll.Read, 1))
		for range 2 {
			r.refusedReport(fd, r.deadPort())
		}
		for range 2 {
			r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.Failed})
			r.takeReports(fd, 1)
		}
		r.quiet(p)
	}},
	{"report: the pending error comes with it, and is the next one's while there are more", func(r *rig) {
		fd := r.reporting("127.0.0.1:0")
		for range 2 {
			r.refusedReport(fd, r.deadPort())
		}
		r.recvErr(fd, syscall.ECONNREFUSED)
		r.silent(fd) // it was one for both
		r.takeReports(fd, 1)
		r.recvErr(fd, syscall.ECONNREFUSED)
		r.silent(fd)
		r.takeReports(fd, 1)
		r.silent(fd)
	}},
	{"report: SocketError reads the pending error and leaves the queue", func(r *rig) {
		p, fd := r.poller(), r.reporting("127.0.0.1:0")
		r.must(p.Add(fd, 0, 1))
		r.refusedReport(fd, r.deadPort())
		r.equal(r.option(fd, sys.SocketError), int(syscall.ECONNREFUSED))
		r.equal(r.option(fd, sys.SocketError), 0)
		r.equal(r.waitOne(p).Ready, poll.Failed)
		r.equal(len(r.takeReports(fd, 8)), 1)
		r.quiet(p)
	}},
	{"report: a send to a live peer is answered by it, and passes when tried again", func(r *rig) {
		fd, live := r.reporting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.refusedReport(fd, r.deadPort())
		r.want(r.trySend(fd, []byte("lost"), r.local(live)), syscall.ECONNREFUSED)
		r.send(fd, "sent", r.local(live))
		r.equal(r.recvText(live), "sent")
		r.silent(live)
		r.equal(len(r.takeReports(fd, 8)), 1)
	}},
	{"report: data queued before stays, behind the error", func(r *rig) {
		fd, peer := r.reporting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.deliver(peer, fd, "data")
		r.refusedReport(fd, r.deadPort())
		r.recvErr(fd, syscall.ECONNREFUSED)
		r.equal(r.recvText(fd), "data")
		r.equal(len(r.takeReports(fd, 8)), 1)
	}},
	{"report: without them an unconnected socket hears nothing", func(r *rig) {
		fd, fence := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.send(fd, "x", r.deadPort())
		r.deliver(fd, fence, "y")
		r.noReports(fd, syscall.EAGAIN)
		r.equal(r.option(fd, sys.SocketError), 0)
	}},
	{"report: without them a connected socket has the pending error alone", func(r *rig) {
		fd := r.refusedBy(r.deadPort())
		r.noReports(fd, syscall.EAGAIN)
		r.recvErr(fd, syscall.ECONNREFUSED)
	}},
	{"report: a connected socket hears nothing of those that it sends to besides", func(r *rig) {
		fd, live := r.reporting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.must(r.Kernel.Connect(fd, r.local(live)))
		r.send(fd, "x", r.deadPort())
		r.deliver(fd, live, "y")
		r.noReports(fd, syscall.EAGAIN)
		r.silent(fd)
	}},
	{"report: a dual-stack socket asks for those of each family", func(r *rig) {
		for o, peer := range map[sys.Option]string{sys.Reports: "127.0.0.1", sys.Reports6: "::1"} {
			fd, fence := r.bound("[::]:0"), r.bound("[::]:0")
			r.turnOn(fd, o)
			for _, ip := range []string{"127.0.0.1", "::1"} {
				dead := r.deadAt(ip)
				r.send(fd, "x", dead)
				if ip == peer {
					r.equal(r.oneReport(fd).Peer.Port(), dead.Port())
					continue
				}
				r.deliverTo(fd, fence, "y", at("::1", r.local(fence)))
				r.noReports(fd, syscall.EAGAIN)
				r.silent(fd)
			}
		}
	}},
	{"report: turning them off ends the queue", func(r *rig) {
		p, fd := r.poller(), r.reporting("127.0.0.1:0")
		r.must(p.Add(fd, 0, 1))
		r.refusedReport(fd, r.deadPort())
		r.equal(r.option(fd, sys.SocketError), int(syscall.ECONNREFUSED))
		r.setOption(fd, sys.Reports, 0)
		r.noReports(fd, syscall.EAGAIN)
		r.quiet(p)
		r.equal(r.memInfo(fd).RecvQueued, 0)
	}},
	{"report: each takes of the receive buffer until it is taken", func(r *rig) {
		fd := r.reporting("127.0.0.1:0")
		r.equal(r.memInfo(fd).RecvQueued, 0)
		last := 0
		for range 3 {
			r.refusedReport(fd, r.deadPort())
			queued := r.memInfo(fd).RecvQueued
			if queued <= last {
				r.Errorf("after another report %d bytes are queued, before it %d", queued, last)
			}
			last = queued
		}
		r.equal(len(r.takeReports(fd, 8)), 3)
		r.equal(r.memInfo(fd).RecvQueued, 0)
	}},
	{"report: a full buffer takes no more, and the pending error comes all the same", func(r *rig) {
		fd := r.reporting("127.0.0.1:0")
		r.setOption(fd, sys.RecvBuffer, 1)
		const sent = 8
		for range sent {
			r.send(fd, "x", r.deadPort())
			r.eventually("the error comes", func() bool {
				return r.option(fd, sys.SocketError) == int(syscall.ECONNREFUSED)
			})
		}
		if got := len(r.takeReports(fd, sent)); got == 0 || got == sent {
			r.Errorf("%d of %d reports are in the smallest buffer", got, sent)
		}
	}},
	{"report: Failed with an empty error queue is to be had", func(r *rig) {
		p, fd, from := r.poller(), r.reporting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.must(p.Add(fd, 0, 1))
		r.setOption(fd, sys.RecvBuffer, 1)
		for r.memInfo(fd).Drops == 0 {
			r.send(from, "x", r.local(fd))
		}
		r.send(fd, "x", r.deadPort())
		r.equal(r.waitOne(p).Ready, poll.Failed)
		r.noReports(fd, syscall.EAGAIN)
		r.equal(r.waitOne(p).Ready, poll.Failed)
		r.equal(r.option(fd, sys.SocketError), int(syscall.ECONNREFUSED))
		r.quiet(p)
	}},
	{"report: data finds no room beside reports", func(r *rig) {
		fd, from := r.reporting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.setOption(fd, sys.RecvBuffer, 1)
		for range 4 {
			r.refusedReport(fd, r.deadPort())
			r.option(fd, sys.SocketError)
		}
		for range 4 {
			r.send(from, "x", r.local(fd))
		}
		r.eventually("all are dropped", func() bool { return r.memInfo(fd).Drops == 4 })
		r.silent(fd)
	}},
	{"report: what this machine finds too large is answered and reported, and no pending error", func(r *rig) {
		for _, c := range []struct {
			reportPair
			size int
		}{
			{reportPairs[0], 65_508}, {reportPairs[2], 65_528}, {reportPairs[4], 65_508},
		} {
			fd, peer := r.reporting(c.from), r.bound(at(c.peer, none).String())
			r.want(r.trySend(fd, make([]byte, c.size), r.local(peer)), syscall.EMSGSIZE)
			got := r.oneReport(fd)
			r.equal(got.Errno, syscall.EMSGSIZE)
			r.equal(got.Origin, sys.OriginLocal)
			r.equal(got.Peer.Addr().String(), c.seen) // Linux leaves the port out for IPv4
			r.equal(got.Offender, netip.Addr{})
			r.must(r.Kernel.Connect(fd, at(c.peer, r.local(peer))))
			o := sys.PathMTU6
			if netip.MustParseAddr(c.peer).Is4() {
				o = sys.PathMTU
			}
			r.equal(int(got.Info), r.option(fd, o))
			r.silent(fd)
			r.want(r.trySend(fd, make([]byte, c.size), none), syscall.EMSGSIZE)
			r.equal(r.oneReport(fd).Peer, at(c.seen, r.local(peer))) // of the connected peer it has the port
		}
	}},
	{"report: a local one leaves the pending error of another where it is", func(r *rig) {
		fd, live := r.reporting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.want(r.trySend(fd, make([]byte, 65_508), r.local(live)), syscall.EMSGSIZE)
		r.send(fd, "x", r.deadPort())
		r.eventually("both are there", func() bool { return r.memInfo(fd).RecvQueued > 832 })
		list := r.takeReports(fd, 1)
		r.equal(list[0].Origin, sys.OriginLocal)
		r.recvErr(fd, syscall.ECONNREFUSED)
		r.equal(r.takeReports(fd, 1)[0].Origin, sys.OriginICMP)
		r.silent(fd)
	}},
	{"report: taking a local one does not clear a pending error", func(r *rig) {
		fd, from := r.reporting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.want(r.trySend(fd, make([]byte, 65_508), r.local(from)), syscall.EMSGSIZE)
		r.setOption(fd, sys.RecvBuffer, 1)
		for r.memInfo(fd).Drops == 0 { // until there is no room for the other report
			r.send(from, "x", r.local(fd))
		}
		r.send(fd, "x", r.deadPort())
		r.deliver(from, r.bound("127.0.0.1:0"), "fence")
		p := r.poller()
		r.must(p.Add(fd, 0, 1))
		list := r.takeReports(fd, 8)
		r.equal(len(list), 1)
		r.equal(list[0].Origin, sys.OriginLocal)
		r.equal(r.waitOne(p).Ready, poll.Failed)
		r.recvErr(fd, syscall.ECONNREFUSED)
		r.quiet(p)
	}},
	{"report: without them this machine answers and no more", func(r *rig) {
		fd := r.bound("127.0.0.1:0")
		r.want(r.trySend(fd, make([]byte, 65_508), r.local(fd)), syscall.EMSGSIZE)
		r.noReports(fd, syscall.EAGAIN)
		r.silent(fd)
	}},
	{"report: an unknown descriptor is EBADF", func(r *rig) {
		r.noReports(1<<20, syscall.EBADF)
	}},
	{"report: a batch has nothing left of those that were in it before", func(r *rig) {
		fd, live := r.reporting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		b := sys.NewReportBatch(1)
		r.refusedReport(fd, r.deadPort())
		_, err := r.Kernel.RecvErrors(fd, b, 1)
		r.must(err)
		r.equal(b.Reports[0].Offender.IsValid(), true)
		r.want(r.trySend(fd, make([]byte, 65_508), r.local(live)), syscall.EMSGSIZE)
		_, err = r.Kernel.RecvErrors(fd, b, 1)
		r.must(err)
		r.equal(b.Reports[0].Offender.IsValid(), false)
		r.equal(b.Reports[0].Errno, syscall.EMSGSIZE)
	}},
}

// reporting makes a socket with all the reports that its family has.
func (r *rig) reporting(local string) int {
	r.Helper()
	fd := r.bound(local)
	r.turnOn(fd, sys.Reports)
	if familyOf(addr(local)) == sys.IPv6 {
		r.turnOn(fd, sys.Reports6)
	}
	return fd
}

// deadAt is deadPort at another address.
func (r *rig) deadAt(ip string) netip.AddrPort {
	r.Helper()
	fd := r.bound(at(ip, none).String())
	a := r.local(fd)
	r.must(r.Kernel.Close(fd))
	return a
}

// refusedReport sends to a dead port and waits until the report is in the queue, if there is room for it. A
// pending error does not stop it.
func (r *rig) refusedReport(fd int, dead netip.AddrPort) {
	r.Helper()
	before := r.memInfo(fd)
	if err := r.trySend(fd, []byte("x"), dead); err != nil {
		r.want(err, syscall.ECONNREFUSED)
		r.send(fd, "x", dead)
	}
	full := before.RecvLimit < 2*before.RecvQueued
	r.eventually("the report comes", func() bool { return full || r.memInfo(fd).RecvQueued > before.RecvQueued })
}
