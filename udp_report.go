package weir

import (
	"syscall"

	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

const (
	reportSlots = 32  // reports of one call
	maxReported = 64  // kinds of report that wait for OnError; more are counted only
	maxRetry    = 128 // reports taken for one send that is tried again
)

// reportTable folds reports of a peer and errno until OnError has heard of them.
type reportTable struct {
	on      bool
	skip    bool         // the last visit's credit went to reports alone
	cost    costEstimate // of one
	waiting fifo[*ICMPError]
}

// fold adds a report to its kind and tells whether there was room.
func (t *reportTable) fold(r ICMPError) bool {
	for _, e := range t.waiting.all() {
		if e.Peer == r.Peer && e.Errno == r.Errno {
			e.Offender, e.MTU = r.Offender, r.MTU
			e.Count++
			return true
		}
	}
	if t.waiting.len() == maxReported {
		return false
	}
	t.waiting.push(&r)
	return true
}

// takeReports empties the error queue into the table, for half of the visit's credit at most, and tells
// whether there is more. No user's code runs here.
func (u *UDP) takeReports() (more bool) {
	if u.reports.skip {
		return true
	}
	l := u.loop
	least := l.ring.Credit() / 2
	for taken := 0; ; {
		asked := max(1, l.ring.Batch(2*reportSlots, u.reports.cost.perMessage)/2)
		began := l.now
		got, err := u.takeSomeReports(asked)
		l.uncharged += got
		l.settle()
		u.reports.cost.learn(l.now-began, got)
		taken += got
		switch {
		case err != nil && err != syscall.EAGAIN:
			return u.receivingFails(longestRest)
		case taken == 0:
			u.clearFailure()
			return false
		case got < asked:
			u.failed = false
			return false
		case l.ring.Exempt() && taken >= maxRetry, !l.ring.Exempt() && l.ring.Credit() <= least:
			return true
		}
	}
}

// takeSomeReports makes one call and returns the number of reports that it took.
func (u *UDP) takeSomeReports(most int) (int, error) {
	b := u.loop.icmp
	got, err := u.loop.kernel.RecvErrors(u.fd, b, most)
	if err != nil {
		return 0, err
	}
	u.counters.reports.Add(uint64(got))
	for i := range got {
		u.learnReport(&b.Reports[i])
	}
	return got, nil
}

// learnReport folds a report. One of this machine itself is not news: the call that sent has answered it.
func (u *UDP) learnReport(r *sys.Report) {
	if r.Origin != sys.OriginICMP || r.Errno == 0 {
		return
	}
	e := ICMPError{Peer: sock.Unmap(r.Peer), Offender: r.Offender.Unmap(), Errno: r.Errno, Count: 1}
	if r.Errno == syscall.EMSGSIZE {
		e.MTU = int(r.Info)
	}
	if !u.reports.fold(e) {
		u.counters.reportsDropped.Add(1)
	}
	u.changed()
}

// takeError handles an error that a call was answered with, though it is about an earlier datagram. With an
// error queue that says more of it.
func (u *UDP) takeError(err error) {
	u.failed = false
	if u.drainQueue() > 0 {
		return
	}
	u.report(err)
}

// drainQueue takes reports out of the error queue, within a limit, and returns their number.
func (u *UDP) drainQueue() (taken int) {
	if !u.reports.on {
		return 0
	}
	for taken < maxRetry {
		got, _ := u.takeSomeReports(reportSlots)
		taken += got
		if got < reportSlots {
			return taken
		}
	}
	u.failed = true // there may be more
	return taken
}

// report tells of an error that the kernel had for the socket.
func (u *UDP) report(err error) {
	u.failed = false
	u.counters.recvErrors.Add(1)
	u.deferError(u.opError("receive", u.peer, err))
}

// clearFailure reads the error that the poller saw where no receive has returned it, nor the error queue: it
// would make the socket ready for ever. A link that goes down leaves one, and an ICMP message that finds the
// receive buffer full.
func (u *UDP) clearFailure() {
	u.failed = false
	pending, err := u.loop.kernel.GetOption(u.fd, sys.SocketError)
	if err == nil && pending != 0 {
		u.report(syscall.Errno(pending))
		return
	}
	if !u.reports.on && err == nil {
		// Others who have the socket asked for reports, and do not take them.
		u.reports.on = true
		u.reports.on = u.drainQueue() > 0
	}
}

// pathMTU asks for the largest packet that the path to the peer takes.
func (u *UDP) pathMTU() (int, error) {
	option := sys.PathMTU6
	if u.peer.Addr().Is4() {
		option = sys.PathMTU
	}
	return u.loop.kernel.GetOption(u.fd, option)
}
