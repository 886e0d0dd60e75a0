package systest

import (
	"net/netip"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// trySendWith is trySend with a Control.
func (r *rig) trySendWith(fd int, payload []byte, to netip.AddrPort, c sys.Control) error {
	r.Helper()
	b := sys.NewSendBatch(1)
	b.Msgs[0] = sys.Message{Buf: payload, Addr: to, Control: c}
	n, err := r.Kernel.Send(fd, b, 0, 1)
	if (n == 1) != (err == nil) {
		r.Fatalf("Send of one message answers %d, %v", n, err)
	}
	return err
}

func (r *rig) sendWith(fd int, payload string, to netip.AddrPort, c sys.Control) {
	r.Helper()
	r.must(r.trySendWith(fd, []byte(payload), to, c))
}

// turnOn sets each of these options.
func (r *rig) turnOn(fd int, options ...sys.Option) {
	r.Helper()
	for _, o := range options {
		r.setOption(fd, o, 1)
	}
}

// loopbackNumber is the number of the loopback's interface, as the kernel tells it.
func (r *rig) loopbackNumber() int {
	r.Helper()
	fd := r.bound("127.0.0.1:0")
	r.turnOn(fd, sys.RecvLocal)
	r.send(fd, "", r.local(fd))
	n := int(r.recv(fd).Control.Interface)
	if n == 0 {
		r.Fatal("a datagram came by interface 0")
	}
	return n
}

// noInterface is a number that no interface has.
const noInterface = 1 << 30

// reports takes what is in the error queue, once something is.
func (r *rig) reports(fd int) []sys.Report {
	r.Helper()
	r.await(fd, poll.Failed)
	return r.takeReports(fd, 16)
}

// takeReports is RecvErrors that must bring something.
func (r *rig) takeReports(fd, n int) []sys.Report {
	r.Helper()
	b := sys.NewReportBatch(n + 2) // with more room than is asked for
	got, err := r.Kernel.RecvErrors(fd, b, n)
	r.must(err)
	return b.Reports[:got]
}

// oneReport is reports where there must be one.
func (r *rig) oneReport(fd int) sys.Report {
	r.Helper()
	list := r.reports(fd)
	if len(list) != 1 {
		r.Fatalf("got reports %v, want one", list)
	}
	return list[0]
}

// noReports is RecvErrors that must fail.
func (r *rig) noReports(fd int, want error) {
	r.Helper()
	n, err := r.Kernel.RecvErrors(fd, sys.NewReportBatch(2), 2)
	r.equal(n, 0)
	r.want(err, want)
}
