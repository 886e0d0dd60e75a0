package systest

import (
	"bytes"
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var sendCases = []assertion{
	{"send: the first one gives an unbound socket a port", func(r *rig) {
		fd, to := r.socket(sys.IPv4), r.bound("127.0.0.1:0")
		r.send(fd, "x", r.local(to))
		r.equal(r.local(fd).Addr().String(), "0.0.0.0")
		r.equal(r.recv(to).Addr, at("127.0.0.1", r.local(fd)))
	}},
	{"send: without a destination is an error, but binds", func(r *rig) {
		for _, f := range []sys.Family{sys.IPv4, sys.IPv6} {
			fd := r.socket(f)
			r.want(r.trySend(fd, []byte("x"), none), syscall.EDESTADDRREQ)
			if r.local(fd).Port() == 0 {
				r.Error("no port")
			}
		}
	}},
	{"send: a batch goes out in order, from one index to another", func(r *rig) {
		fd := r.bound("127.0.0.1:0")
		a, b := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		batch := r.batch("not sent", none, "1", r.local(a), "2", r.local(b), "3", r.local(a), "not sent", none)
		n, err := r.Kernel.Send(fd, batch, 1, 4)
		r.must(err)
		r.equal(n, 3)
		r.equal(r.recvText(a), "1")
		r.equal(r.recvText(a), "3")
		r.equal(r.recvText(b), "2")
		r.silent(a)
	}},
	{"send: a batch stops before the message that fails, and the next call has its error", func(r *rig) {
		fd, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		good := r.local(to)
		batch := r.batch("0", good, "1", good, "bad", addr("127.0.0.1:0"), "3", good)
		n, err := r.Kernel.Send(fd, batch, 0, 4)
		r.must(err)
		r.equal(n, 2)
		n, err = r.Kernel.Send(fd, batch, 2, 4)
		r.equal(n, 0)
		r.want(err, syscall.EINVAL)
		n, err = r.Kernel.Send(fd, batch, 3, 4)
		r.must(err)
		r.equal(n, 1)
		for _, want := range []string{"0", "1", "3"} {
			r.equal(r.recvText(to), want)
		}
		r.silent(to)
	}},
	{"send: a batch mixes the default destination with others", func(r *rig) {
		peer, other := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		batch := r.batch("p", none, "o", r.local(other), "p", none)
		n, err := r.Kernel.Send(r.connected(r.local(peer)), batch, 0, 3)
		r.must(err)
		r.equal(n, 3)
		r.equal(r.recvText(peer)+r.recvText(peer), "pp")
		r.equal(r.recvText(other), "o")
	}},
	{"send: the same batch again, with other messages", func(r *rig) {
		fd, to := r.bound("[::]:0"), r.bound("[::]:0")
		v6, v4 := at("::1", r.local(to)), at("127.0.0.1", r.local(to))
		batch := r.batch("6", v6)
		for _, dest := range []netip.AddrPort{v6, v4, v6} {
			batch.Msgs[0].Addr = dest
			n, err := r.Kernel.Send(fd, batch, 0, 1)
			r.must(err)
			r.equal(n, 1)
			want := "::1"
			if dest == v4 {
				want = "::ffff:127.0.0.1"
			}
			r.equal(r.recv(to).Addr.Addr().String(), want)
		}
		batch.Msgs[0].Addr = none
		_, err := r.Kernel.Send(fd, batch, 0, 1)
		r.want(err, syscall.EDESTADDRREQ)
	}},
	{"send: no datagram is larger than its protocol allows", func(r *rig) {
		v4, v6, dual := r.bound("127.0.0.1:0"), r.bound("[::1]:0"), r.bound("[::]:0")
		for _, c := range []struct {
			from, to int
			dest     netip.AddrPort
			most     int
		}{
			{v4, v4, r.local(v4), 65507},
			{v6, v6, r.local(v6), 65527},
			{dual, v4, r.local(v4), 65507},
			{dual, v4, at("::ffff:127.0.0.1", r.local(v4)), 65507},
		} {
			payload := bytes.Repeat([]byte("weir"), 20_000)
			for _, size := range []int{c.most + 1, 65536, len(payload)} {
				r.want(r.trySend(c.from, payload[:size], c.dest), syscall.EMSGSIZE)
			}
			r.must(r.trySend(c.from, payload[:c.most], c.dest))
			if got := r.recv(c.to).Buf; !bytes.Equal(got, payload[:c.most]) {
				r.Errorf("the largest datagram came with %d bytes", len(got))
			}
		}
	}},
	{"send: the destination is checked before the size", func(r *rig) {
		huge := make([]byte, 65508)
		fd := r.bound("127.0.0.1:0")
		r.want(r.trySend(fd, huge, none), syscall.EDESTADDRREQ)
		r.want(r.trySend(fd, huge, addr("127.0.0.1:0")), syscall.EINVAL)
	}},
	{"send: does not wait, and poll agrees", func(r *rig) {
		r.await(r.bound("127.0.0.1:0"), poll.Writable)
	}},
}

// batch makes messages of payloads and destinations, in turn.
func (r *rig) batch(pairs ...any) *sys.SendBatch {
	b := sys.NewSendBatch(len(pairs) / 2)
	for i := range b.Msgs {
		b.Msgs[i] = sys.Message{Buf: []byte(pairs[2*i].(string)), Addr: pairs[2*i+1].(netip.AddrPort)}
	}
	return b
}
