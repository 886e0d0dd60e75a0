//go:build linux

package dgram

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirnet/weir/internal/sys/systest"
)

// TestFirewall: what a firewall drops is lost, and no more: those behind it arrive, and all do when the rule is gone. That
// it answers EPERM does not end batched sends.
func TestFirewall(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	c, blocked, open := listen(t, loopback4, Config{}), listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	want := c.Stats().Paths
	systest.Configure(t, "nft add table inet t", "nft add chain inet t out { type filter hook output priority 0 ; }",
		fmt.Sprintf("nft add rule inet t out udp dport %d drop", addrOf(blocked).Port()))
	for range 5 {
		send(t, c, "dropped", addrOf(blocked))
	}
	ms := append(messagesTo(blocked, "dropped"), messagesTo(open, "1")...)
	ms = append(append(ms, messagesTo(blocked, "dropped", "dropped")...), messagesTo(open, "2", "3")...)
	if n, err := c.WriteBatch(ms, 0); n != 6 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if c.segments {
		sendTrain(t, c, blocked, "aabbc", 2)
	}
	wantNext(t, open, "1", "2", "3")
	wantSilence(t, blocked)
	lost := uint64(8)
	if c.segments {
		lost += 3
	}
	if s := c.Stats(); s.SendErrors != (SendErrors{Lost: lost}) || s.SendLost != lost || s.Sent != 3 {
		t.Errorf("%+v", s)
	}
	systest.Configure(t, "nft flush ruleset")
	for range 5 {
		send(t, c, "after", addrOf(blocked))
	}
	wantNext(t, blocked, "after", "after", "after", "after", "after")
	if s := c.Stats(); s.SendLost != lost || s.Paths != want {
		t.Errorf("%+v", s)
	}
}

// TestFirewallToggled: a rule that comes and goes while many send.
func TestFirewallToggled(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{RecvBufferBytes: 16 << 20, NoGRO: true})
	systest.Configure(t, "nft add table inet t", "nft add chain inet t out { type filter hook output priority 0 ; }")
	var stop atomic.Bool
	var wg sync.WaitGroup
	var written atomic.Uint64
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				if _, err := c.WriteTo([]byte("x"), peer.LocalAddr()); err != nil {
					t.Error(err)
					return
				}
				written.Add(1)
				time.Sleep(100 * time.Microsecond)
			}
		})
	}
	for range 5 {
		systest.Configure(t, fmt.Sprintf("nft add rule inet t out udp dport %d drop", addrOf(peer).Port()))
		time.Sleep(silence)
		systest.Configure(t, "nft flush chain inet t out")
		time.Sleep(silence)
	}
	stop.Store(true)
	wg.Wait()
	s := c.Stats()
	if s.Sent == 0 || s.SendErrors.Lost == 0 || s.Sent+s.SendErrors.Lost != written.Load() || s.SendErrors.Lost != s.SendLost {
		t.Errorf("wrote %d: %+v", written.Load(), s)
	}
	for range s.Sent - peer.Stats().KernelDropped {
		wantNext(t, peer, "x")
	}
	wantSilence(t, peer)
}

// TestPathMTU: what must stay whole and is larger than the path takes is EMSGSIZE, as discovery of the path's MTU needs;
// trains of such segments, too; smaller ones go on.
func TestPathMTU(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "ip link set lo mtu 1500", "ip addr add 10.9.0.1/32 dev lo",
		"ip route replace local 10.9.0.1 dev lo mtu 1400 table local")
	const most = 1400 - 28
	peer := listen(t, "10.9.0.1:0", Config{})
	for _, connected := range []bool{false, true} {
		c := listen(t, "0.0.0.0:0", Config{})
		var to *net.UDPAddr
		if connected {
			c = dial(t, peer.LocalAddr(), Config{})
		} else {
			to = peer.LocalAddr().(*net.UDPAddr)
		}
		setOption(t, c, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
		write := func(bytes, segment int) error {
			var oob []byte
			if segment > 0 {
				oob = segmentOf(segment)
			}
			_, _, err := c.WriteMsgUDP(make([]byte, bytes), oob, to)
			return err
		}
		wantSize := func(what string, err error) {
			t.Helper()
			var call *os.SyscallError
			if !errors.Is(err, syscall.EMSGSIZE) || !errors.As(err, &call) || call.Syscall != "sendmsg" {
				t.Errorf("connected %v, %s: %v; want EMSGSIZE of sendmsg", connected, what, err)
			}
		}
		wantSize("a datagram", write(most+1, 0))
		must(t, write(most, 0))
		if got, _ := next(t, peer); len(got) != most {
			t.Errorf("%d bytes", len(got))
		}
		if s := c.Stats(); s.SendErrors.Size != 1 || s.SendLost != 1 || s.Sent != 1 {
			t.Errorf("%+v", s)
		}
		wantSize("a train", write(3*(most+1), most+1))
		must(t, write(3*most, most))
		for range 3 {
			if got, _ := next(t, peer); len(got) != most {
				t.Errorf("%d bytes", len(got))
			}
		}
		s := c.Stats()
		if s.SendErrors.Size != 4 || s.SendLost != 4 || s.Sent != 4 || s.Paths.GSO != c.segments || c.segments && s.SentJoined != 3 {
			t.Errorf("%+v", s)
		}
		wantSilence(t, peer)
	}
}

// TestDeviceMTU: a train whose segments the device cannot take whole goes out singly, in fragments, and one of smaller
// segments as a train.
func TestDeviceMTU(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "ip link set lo mtu 1300")
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	needGSO(t, c)
	for _, row := range []struct {
		size   int
		joined uint64
	}{{1400, 0}, {1200, 10}} {
		payload, want := numbered(10, row.size, row.size)
		before := c.Stats().SentJoined
		sendTrain(t, c, peer, payload, row.size)
		wantNext(t, peer, want...)
		if s := c.Stats(); s.SentJoined-before != row.joined || s.SendLost != 0 || s.SendErrors.Offload == 0 {
			t.Errorf("segments of %d: %+v", row.size, s)
		}
	}
}

// slowLink is a link that takes a few datagrams a second, and has them wait in the sender's buffer.
func slowLink(t *testing.T) {
	t.Helper()
	systest.Configure(t, "ip link add d0 type veth peer name d1", "ip addr add 10.8.0.1/24 dev d0", "ip link set d0 up",
		"ip link set d1 up", "ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev d0",
		"tc qdisc add dev d0 root tbf rate 400kbit burst 3000 limit 10000000")
}

// TestSendBufferFull: a write waits while the kernel's buffer is full, and goes on; its deadline holds; so it is with many
// writers at once, and with trains.
func TestSendBufferFull(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	slowLink(t)
	to := netip.MustParseAddrPort("10.8.0.2:9") // weir:port nobody is there
	payload := make([]byte, 1000)
	for _, train := range []bool{false, true} {
		c := listen(t, "10.8.0.1:0", Config{SendBufferBytes: 8_000})
		var oob []byte
		if train {
			oob = segmentOf(500)
		}
		write := func() error {
			_, _, err := c.WriteMsgUDPAddrPort(payload, oob, to)
			return err
		}
		for range 40 {
			must(t, write())
		}
		s := c.Stats()
		if s.SendErrors.Wait == 0 || s.SendLost != 0 || s.SentBytes != 40_000 {
			t.Errorf("%+v", s)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5 {
					if err := write(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		within(t, "many writers", wg.Wait)
		if s := c.Stats(); s.SentBytes != 80_000 || s.SendLost != 0 {
			t.Errorf("%+v", s)
		}
		systest.Configure(t, "tc qdisc change dev d0 root tbf rate 8kbit burst 3000 limit 10000000")
		began := time.Now()
		must(t, c.SetWriteDeadline(began.Add(200*time.Millisecond)))
		var errs [4]error
		for i := range errs {
			wg.Go(func() {
				for errs[i] == nil {
					errs[i] = write()
				}
			})
		}
		within(t, "a deadline", wg.Wait)
		for _, err := range errs {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%v; want the deadline", err)
			}
		}
		if took := time.Since(began); took < 200*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		must(t, c.SetWriteDeadline(time.Time{}))
		blocked := make(chan error, 1)
		go func() {
			for {
				if err := write(); err != nil {
					blocked <- err
					return
				}
			}
		}()
		time.Sleep(silence)
		must(t, c.Close())
		wantEnd(t, "Close", blocked, net.ErrClosed)
		systest.Configure(t, "tc qdisc change dev d0 root tbf rate 400kbit burst 3000 limit 10000000")
	}
}

// TestErrorWhileFull: an ICMP error that comes while the send buffer is full is an event that tells of an error alone, which
// the runtime's poller does not wait on. A read passes it over, does not spin, and gets what comes then.
func TestErrorWhileFull(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	slowLink(t)
	systest.Configure(t, "tc qdisc change dev d0 root tbf rate 8kbit burst 3000 limit 10000000")
	wire := openWire(t)
	peer := &net.UDPAddr{IP: net.IPv4(10, 8, 0, 2), Port: 9} // weir:port nobody is there
	c := dial(t, peer, Config{SendBufferBytes: 8_000})
	var err error
	for must(t, c.SetWriteDeadline(time.Now().Add(200*time.Millisecond))); err == nil; {
		_, err = c.Write(make([]byte, 1000))
	}
	ended := waiting(c)
	const errs = 5
	for i := range errs {
		wire.send(t, unreachable(addrOf(c), peer.AddrPort()))
		eventually(t, "the error is passed over", func() bool { return c.Stats().ReceiveErrors > uint64(i) })
	}
	// However often that is: rests of an error that a peer may be behind stay short.
	eventually(t, "the next tries", func() bool { return c.Stats().ReceiveErrors > 40 })
	before, calls := processorTime(), c.Stats().ReceiveCalls
	time.Sleep(500 * time.Millisecond)
	s, used := c.Stats(), processorTime()-before
	if s.ReceiveCalls-calls > 200 || used > 400*time.Millisecond {
		t.Errorf("%d receive calls, %v of the processor in half a second", s.ReceiveCalls-calls, used)
	}
	t.Logf("%d receive calls, %d errors", s.ReceiveCalls-calls, s.ReceiveErrors)
	select {
	case err := <-ended:
		t.Fatalf("the read ended: %v", err)
	default:
	}
	wire.send(t, datagramFrom(peer.AddrPort(), addrOf(c), "x"))
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(patience):
		t.Fatal("the read does not go on")
	}
}

// wire is the other end of slowLink's.
type wire struct {
	fd     int
	header []byte
}

func openWire(t *testing.T) *wire {
	t.Helper()
	d0, err := net.InterfaceByName("d0")
	must(t, err)
	d1, err := net.InterfaceByName("d1")
	must(t, err)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	must(t, unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: d1.Index}))
	return &wire{fd, append(append(append([]byte{}, d0.HardwareAddr...), d1.HardwareAddr...), 0x08, 0x00)}
}

func (w *wire) send(t *testing.T, packet []byte) {
	t.Helper()
	_, err := unix.Write(w.fd, append(append([]byte{}, w.header...), packet...))
	must(t, err)
}

// packet4 is an IPv4 packet.
func packet4(protocol byte, from, to netip.Addr, payload []byte) []byte {
	b := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0}
	b = append(append(b, from.Unmap().AsSlice()...), to.Unmap().AsSlice()...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+len(payload)))
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return append(b, payload...)
}

func datagramFrom(from, to netip.AddrPort, payload string) []byte {
	b := binary.BigEndian.AppendUint16(nil, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	b = append(append(b, 0, 0), payload...) // without a checksum
	return packet4(unix.IPPROTO_UDP, from.Addr(), to.Addr(), b)
}

// unreachable says to who sent that nobody listens where it went.
func unreachable(sender, receiver netip.AddrPort) []byte {
	b := append([]byte{3, 3, 0, 0, 0, 0, 0, 0}, datagramFrom(sender, receiver, "")...)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	return packet4(unix.IPPROTO_ICMP, receiver.Addr(), sender.Addr(), b)
}

// checksum is that of the internet (RFC 1071).
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum + sum>>16)
}
