//go:build linux

package dgram

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/weirnet/weir/internal/sys"
)

// watchedKernel notes what is sent.
type watchedKernel struct {
	sys.Kernel
	mu    sync.Mutex
	sends [][]sys.Message
}

func (k *watchedKernel) Send(fd int, b *sys.SendBatch, from, to int) (int, error) {
	n, err := k.Kernel.Send(fd, b, from, to)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sends = append(k.sends, append([]sys.Message(nil), b.Msgs[from:from+n]...))
	return n, err
}

// watch has a Conn's sends noted that nobody uses yet.
func watch(c *Conn) *watchedKernel {
	k := &watchedKernel{Kernel: c.kernel}
	c.kernel = k
	return k
}

// numbered is a payload of so many datagrams of a size, the last one perhaps shorter, each told from the others.
func numbered(count, size, last int) (payload string, pieces []string) {
	for i := range count {
		n := size
		if i == count-1 {
			n = last
		}
		pieces = append(pieces, strings.Repeat(string(rune('0'+i%70)), n))
	}
	return strings.Join(pieces, ""), pieces
}

// TestTrains: a train arrives as the datagrams that it is, in their order, whoever joins and cuts.
func TestTrains(t *testing.T) {
	t.Parallel()
	for _, address := range []string{loopback4, loopback6} {
		for _, cfg := range []Config{{}, {NoGRO: true}, {NoGSO: true}, {NoBatches: true}} {
			for _, row := range []struct{ count, size, last int }{
				{1, 100, 100}, {1, 100, 7}, {2, 100, 100}, {2, 100, 1}, {17, 1200, 1200}, {40, 1200, 900}, {64, 10, 10}, {64, 1, 1},
				{65, 10, 10}, {100, 10, 3}, {128, 500, 500}, {3, 20_000, 5},
			} {
				name := fmt.Sprintf("%s %v %v", address, row, [3]bool{cfg.NoGRO, cfg.NoGSO, cfg.NoBatches})
				if address == loopback6 {
					needIPv6(t)
				}
				cfg.RecvBufferBytes = 4 << 20
				c, peer := listen(t, address, cfg), listen(t, address, cfg)
				payload, want := numbered(row.count, row.size, row.last)
				sendTrain(t, c, peer, payload, row.size)
				for i, m := range readBatch(t, peer, row.count) {
					if got := string(m.Buffers[0][:m.N]); got != want[i] || m.Flags != 0 {
						t.Fatalf("%s: datagram %d has %d bytes of %.3q, flags %#x; want %d of %.3q", name, i, len(got), got, m.Flags, len(want[i]), want[i])
					}
				}
				sent, got := c.Stats(), peer.Stats()
				joined := uint64(0)
				if sent.Paths.GSO && row.count > 1 && row.count <= 64 {
					joined = uint64(row.count)
				}
				if sent.Sent != uint64(row.count) || sent.SentBytes != uint64(len(payload)) || sent.SentJoined != joined || joined > 0 && sent.SendCalls != 1 {
					t.Errorf("%s: %+v", name, sent)
				}
				if got.Received != sent.Sent || got.ReceivedBytes != sent.SentBytes || joined > 0 && got.Paths.GRO && got.ReceivedJoined != joined {
					t.Errorf("%s: sent %d joined; %+v", name, joined, got)
				}
			}
		}
	}
}

// TestTrainsRead: a train is read one by one, too, with its source and its control messages, but not that of GRO.
func TestTrainsRead(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	needGSO(t, c)
	needGRO(t, peer)
	setOption(t, peer, unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	setOption(t, peer, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	payload, want := numbered(10, 300, 20)
	oob := append(tos(1), segmentOf(300)...)
	if _, _, err := c.WriteMsgUDP([]byte(payload), oob, peer.LocalAddr().(*net.UDPAddr)); err != nil {
		t.Fatal(err)
	}
	b, in := make([]byte, 200), make([]byte, 200)
	for i, w := range want {
		n, oobn, flags, from, err := peer.ReadMsgUDPAddrPort(b, in)
		must(t, err)
		if string(b[:n]) != w[:min(len(w), 200)] || flags != map[bool]int{true: unix.MSG_TRUNC}[len(w) > 200] || from != addrOf(c) {
			t.Errorf("datagram %d: %d bytes, flags %#x, from %v", i, n, flags, from)
		}
		if oobn != unix.CmsgSpace(1)+unix.CmsgSpace(12) || classOf(t, in[:oobn]) != 1 {
			t.Errorf("datagram %d: % x", i, in[:oobn])
		}
		var m ipv4.ControlMessage
		must(t, m.Parse(in[:oobn]))
		if !m.Dst.Equal(net.IPv4(127, 0, 0, 1)) || m.IfIndex == 0 {
			t.Errorf("datagram %d: %v", i, &m)
		}
	}
	if s := peer.Stats(); s.ReceivedJoined != 10 || s.Truncated != 9 || s.ReceiveCalls != 1 {
		t.Errorf("%+v", s)
	}
}

// TestControlRoom: "oobn <= len(oob), whole messages alone. flags is … MSG_CTRUNC where oob was too small for all."
func TestControlRoom(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	setOption(t, peer, unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	setOption(t, peer, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	class, info := unix.CmsgSpace(1), unix.CmsgSpace(12)
	for room, want := range map[int]int{0: 0, 1: 0, min(class, info) - 1: 0, info: info, class + info - 1: info, class + info: class + info, 500: class + info} {
		for range 2 {
			send(t, c, "x", addrOf(peer))
		}
		oob := make([]byte, room)
		_, n, flags, _, err := peer.ReadMsgUDP(make([]byte, 1), oob)
		must(t, err)
		cut := want < class+info && room > 0
		if n != want || (flags == unix.MSG_CTRUNC) != cut {
			t.Errorf("room for %d: %d, flags %#x; want %d", room, n, flags, want)
		}
		if _, err := unix.ParseSocketControlMessage(oob[:n]); err != nil {
			t.Errorf("room for %d: %v", room, err)
		}
		ms := messages(1, 1)
		ms[0].OOB = oob
		if _, err := peer.ReadBatch(ms, 0); err != nil || ms[0].NN != want || (ms[0].Flags == unix.MSG_CTRUNC) != cut {
			t.Errorf("ReadBatch with room for %d: %d, flags %#x, %v", room, ms[0].NN, ms[0].Flags, err)
		}
	}
}

// TestControlTooMuch: where the kernel has more to say than a Conn takes, the flags say that it was cut, and what is there
// is whole.
func TestControlTooMuch(t *testing.T) {
	t.Parallel()
	needIPv6(t)
	c, peer := listen(t, loopback6, Config{}), listen(t, loopback6, Config{})
	for _, o := range [][3]int{
		{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVORIGDSTADDR, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_2292PKTINFO, 1}, {unix.IPPROTO_IPV6, unix.IPV6_2292HOPLIMIT, 1},
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE},
	} {
		setOption(t, peer, o[0], o[1], o[2])
	}
	for range 2 {
		send(t, c, "x", addrOf(peer))
	}
	oob := make([]byte, 1000)
	n, all, _, _, err := unix.Recvmsg(descriptor(t, peer), make([]byte, 1), oob, unix.MSG_DONTWAIT)
	if n != 1 || err != nil || all <= 256 {
		t.Skipf("the kernel has no more to say than %d bytes, %v", all, err)
	}
	_, oobn, flags, _, err := peer.ReadMsgUDP(make([]byte, 1), oob)
	must(t, err)
	if flags != unix.MSG_CTRUNC || oobn == 0 || oobn >= all {
		t.Errorf("%d of %d bytes, flags %#x", oobn, all, flags)
	}
	ms, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		t.Errorf("%v in % x", err, oob[:oobn])
	}
	for _, m := range ms {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPING_NEW && len(m.Data) < 48 {
			t.Errorf("a control message of %d bytes was cut", len(m.Data))
		}
	}
}

// TestControlSent: the address to send from, ECN, and an unknown control message reach the kernel.
func TestControlSent(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, "0.0.0.0:0", Config{}), listen(t, loopback4, Config{})
	setOption(t, peer, unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	setOption(t, peer, unix.IPPROTO_IP, unix.IP_RECVTTL, 1)
	to := peer.LocalAddr().(*net.UDPAddr)
	ttl := cmsg(unix.IPPROTO_IP, unix.IP_TTL, 33, 0, 0, 0) // not one that package sys knows
	for name, oob := range map[string][]byte{
		"known":   append(sourceOf(net.IPv4(127, 0, 0, 9)), tos(3)...),
		"unknown": append(append(sourceOf(net.IPv4(127, 0, 0, 9)), tos(3)...), ttl...),
	} {
		if n, oobn, err := c.WriteMsgUDP([]byte("x"), oob, to); n != 1 || oobn != len(oob) || err != nil {
			t.Fatalf("%s: %d, %d, %v", name, n, oobn, err)
		}
		in := make([]byte, 200)
		_, n, _, from, err := peer.ReadMsgUDPAddrPort(make([]byte, 1), in)
		must(t, err)
		if from != addrOfPort("127.0.0.9", c) || classOf(t, in[:n]) != 3 {
			t.Errorf("%s: from %v, % x", name, from, in[:n])
		}
		var m ipv4.ControlMessage
		must(t, m.Parse(in[:n]))
		if (m.TTL == 33) != (name == "unknown") {
			t.Errorf("%s: TTL %d", name, m.TTL)
		}
	}
	for _, size := range []int{sys.MaxRawBytes, sys.MaxRawBytes + 8} {
		oob := make([]byte, 0, size)
		for len(oob)+len(ttl) <= size {
			oob = append(oob, ttl...)
		}
		for len(oob) < size {
			oob = append(oob, cmsg(unix.IPPROTO_IP, unix.IP_TTL)[:8]...)
		}
		_, _, err := c.WriteMsgUDP([]byte("x"), oob[:size], to)
		if tooMuch := err != nil && strings.Contains(err.Error(), "control messages"); tooMuch != (size > sys.MaxRawBytes) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestControlIPv6 is TestControlSent over IPv6, to IPv6 and to IPv4.
func TestControlIPv6(t *testing.T) {
	t.Parallel()
	needIPv6(t)
	c := listen(t, "[::]:0", Config{})
	class := func(v byte) []byte { return cmsg(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, v, 0, 0, 0) }
	for _, row := range []struct {
		address string
		oob     []byte
		level   int
		option  int
	}{
		{loopback6, class(2), unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS},
		{loopback4, tos(2), unix.IPPROTO_IP, unix.IP_RECVTOS},
	} {
		peer := listen(t, row.address, Config{})
		setOption(t, peer, row.level, row.option, 1)
		if _, _, err := c.WriteMsgUDPAddrPort([]byte("x"), row.oob, addrOf(peer)); err != nil {
			t.Fatal(err)
		}
		in := make([]byte, 200)
		_, n, _, _, err := peer.ReadMsgUDP(make([]byte, 1), in)
		must(t, err)
		if got := classOf(t, in[:n]); got != 2 {
			t.Errorf("%s: class %d", row.address, got)
		}
	}
}

// TestSingleIsNoTrain: UDP_SEGMENT with what is only one datagram does not reach the kernel, as some devices get its
// checksum wrong then; nor does that with 65 datagrams or more.
func TestSingleIsNoTrain(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	k := watch(c)
	needGSO(t, c)
	for _, row := range []struct {
		bytes, segment int
		want           uint16
		messages       int
	}{{0, 100, 0, 1}, {1, 100, 0, 1}, {100, 100, 0, 1}, {101, 100, 100, 1}, {6400, 100, 100, 1}, {6401, 100, 0, 65}} {
		k.sends = nil
		sendTrain(t, c, peer, strings.Repeat("x", row.bytes), row.segment)
		n := 0
		for _, call := range k.sends {
			for _, m := range call {
				n++
				if m.Control.Segment != row.want {
					t.Errorf("%d bytes in segments of %d: the kernel is told %d, want %d", row.bytes, row.segment, m.Control.Segment, row.want)
				}
			}
		}
		if n != row.messages {
			t.Errorf("%d bytes in segments of %d: %d messages, want %d", row.bytes, row.segment, n, row.messages)
		}
	}
}

// TestWriteBatchTrains: a batch holds trains beside others, also where the kernel does not take them.
func TestWriteBatchTrains(t *testing.T) {
	t.Parallel()
	for _, noGSO := range []bool{false, true} {
		c, peer := listen(t, loopback4, Config{NoGSO: noGSO}), listen(t, loopback4, Config{})
		train := message(peer.LocalAddr(), "aab", "bc")
		train.OOB = segmentOf(2)
		ms := []ipv4.Message{message(peer.LocalAddr(), "1"), train, train, message(peer.LocalAddr(), "2"), train}
		if n, err := c.WriteBatch(ms, 0); n != 5 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		wantNext(t, peer, "1", "aa", "bb", "c", "aa", "bb", "c", "2", "aa", "bb", "c")
		if s := c.Stats(); s.Sent != 11 || s.SentJoined != 0 && !s.Paths.GSO || s.SentJoined != 9 && s.Paths.GSO {
			t.Errorf("%+v", s)
		}
	}
}

// TestSyscallConnRead: "Who reads it gets datagrams past the Conn: GRO is off from then on, so that each comes as it was
// sent".
func TestSyscallConnRead(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	needGSO(t, c)
	raw, err := peer.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(uintptr) {}))
	if !peer.recv.joined.Load() && peer.Stats().Paths.GRO {
		t.Error("Control ends GRO")
	}
	must(t, raw.Read(func(uintptr) bool { return true }))
	if peer.Stats().Paths.GRO {
		t.Error("Read does not end GRO")
	}
	sendTrain(t, c, peer, "aabbc", 2)
	for _, want := range []string{"aa", "bb", "c"} {
		b := make([]byte, 100)
		var n int
		must(t, raw.Read(func(fd uintptr) bool {
			n, _, err = unix.Recvfrom(int(fd), b, unix.MSG_DONTWAIT)
			return err != unix.EAGAIN
		}))
		if err != nil || string(b[:n]) != want {
			t.Errorf("%q, %v; want %q", b[:n], err, want)
		}
	}
	sendTrain(t, c, peer, "aabbc", 2)
	wantNext(t, peer, "aa", "bb", "c")
}

// TestSyscallConnWrite: that a write of the Conn waits, which tries again and again, is no deadline of who writes past it;
// one that is set is.
func TestSyscallConnWrite(t *testing.T) {
	t.Parallel()
	c := listen(t, loopback4, Config{Faults: plan(t, "send=EAGAIN")})
	raw, err := c.SyscallConn()
	must(t, err)
	blocked := make(chan error, 1)
	go func() {
		_, err := c.WriteTo([]byte("x"), c.LocalAddr())
		blocked <- err
	}()
	eventually(t, "the write waits", func() bool { return c.Stats().SendErrors.Wait > 1 })
	began := time.Now()
	if err := raw.Write(func(uintptr) bool { return time.Since(began) > 5*maxBlocked }); err != nil {
		t.Errorf("past one that waits: %v", err)
	}
	must(t, c.SetWriteDeadline(time.Now().Add(silence)))
	var op *net.OpError
	if err := raw.Write(func(uintptr) bool { return false }); !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &op) {
		t.Errorf("past the deadline: %v", err)
	}
	wantEnd(t, "the deadline", blocked, os.ErrDeadlineExceeded)
}
