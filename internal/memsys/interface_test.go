package memsys_test

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// sendWith sends one datagram with a Control.
func (h *host) sendWith(fd int, payload []byte, to netip.AddrPort, c sys.Control) error {
	b := sys.NewSendBatch(1)
	b.Msgs[0] = sys.Message{Buf: payload, Addr: to, Control: c}
	_, err := h.k.Send(fd, b, 0, 1)
	return err
}

func (h *host) set(fd int, o sys.Option, value int) {
	h.Helper()
	if err := h.k.SetOption(fd, o, value); err != nil {
		h.Fatal(err)
	}
}

func (h *host) recv(fd int) (sys.Message, error) {
	b := sys.NewRecvBatch(1, 65536)
	_, err := h.k.Recv(fd, b, 1)
	return b.Msgs[0], err
}

// silent asserts that nothing waits at fd.
func (h *host) silent(fd int, why string) {
	h.Helper()
	if m, err := h.recv(fd); err != syscall.EAGAIN {
		h.Errorf("%s: got %q, %v", why, m.Buf, err)
	}
}

// TestMTU has datagrams around the MTU of a usual network, in each mode and as segments.
func TestMTU(t *testing.T) {
	for ip, headers := range map[string]int{"127.0.0.1:0": 28, "[::1]:0": 48} {
		h := newHost(t)
		const mtu = 1500
		h.SetMTU(mtu)
		fd, addr := h.bound(ip)
		most := mtu - headers
		discovery, reports, pathMTU := sys.PathMTUDiscovery6, sys.Reports6, sys.PathMTU6
		if addr.Addr().Is4() {
			discovery, reports, pathMTU = sys.PathMTUDiscovery, sys.Reports, sys.PathMTU
		}
		for mode, want := range map[sys.PathMTUMode]error{
			sys.FragmentByRoute: nil, sys.FragmentAlways: nil, sys.FragmentOmit: nil,
			sys.FragmentNever: syscall.EMSGSIZE, sys.FragmentProbe: syscall.EMSGSIZE,
		} {
			h.set(fd, discovery, int(mode))
			if err := h.send(fd, make([]byte, most), addr); err != nil {
				t.Errorf("%s, mode %d: %d bytes: %v", ip, mode, most, err)
			}
			if err := h.send(fd, make([]byte, most+1), addr); err != want {
				t.Errorf("%s, mode %d: %d bytes: %v, want %v", ip, mode, most+1, err, want)
			}
			// "GSO never does": a segment is not fragmented in any mode.
			c := sys.Control{Segment: uint16(most)}
			if err := h.sendWith(fd, make([]byte, 2*most), addr, c); err != nil {
				t.Errorf("%s, mode %d: segments of %d bytes: %v", ip, mode, most, err)
			}
			c.Segment++
			if err := h.sendWith(fd, make([]byte, 2*most), addr, c); err != syscall.EMSGSIZE {
				t.Errorf("%s, mode %d: segments of %d bytes: %v", ip, mode, c.Segment, err)
			}
		}
		h.set(fd, discovery, int(sys.FragmentNever))
		h.set(fd, reports, 1)
		if err := h.send(fd, make([]byte, most+1), addr); err != syscall.EMSGSIZE {
			t.Error(err)
		}
		b := sys.NewReportBatch(2)
		if n, err := h.k.RecvErrors(fd, b, 2); n != 1 || err != nil || b.Reports[0].Info != mtu {
			t.Errorf("%s: reports %+v, %v", ip, b.Reports[:n], err)
		}
		if err := h.k.Connect(fd, addr); err != nil {
			t.Fatal(err)
		}
		if got, err := h.k.GetOption(fd, pathMTU); got != mtu || err != nil {
			t.Errorf("%s: the path's MTU is %d, %v", ip, got, err)
		}
	}
}

// TestOtherInterfaces: unicast is on the loopback; what goes out elsewhere, or is awaited there, does not come.
func TestOtherInterfaces(t *testing.T) {
	h := newHost(t)
	h.AddInterface(7, "wire")
	from, _ := h.bound("127.0.0.1:0")
	fd, addr := h.bound("127.0.0.1:0")
	if err := h.sendWith(from, nil, addr, sys.Control{Interface: 7}); err != nil {
		t.Fatal(err)
	}
	h.silent(fd, "sent by another interface")

	for _, c := range []struct {
		fd   int
		name string
	}{{from, "wire"}, {from, ""}, {fd, "wire"}} {
		if err := h.k.BindToDevice(c.fd, c.name); err != nil {
			t.Fatal(err)
		}
		if c.name == "" {
			continue
		}
		if err := h.send(from, nil, addr); err != nil {
			t.Fatal(err)
		}
		h.silent(fd, "kept to another interface")
	}
	if err := h.k.BindToDevice(fd, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.send(from, []byte("released"), addr); err != nil {
		t.Fatal(err)
	}
	if m, err := h.recv(fd); string(m.Buf) != "released" {
		t.Errorf("got %q, %v", m.Buf, err)
	}
	if err := h.k.BindToDevice(fd, "wire"); err != nil {
		t.Fatal(err)
	}
	if err := h.k.SetOption(fd, sys.MulticastInterface, 1); err != syscall.EINVAL {
		t.Errorf("MulticastInterface other than the device: %v", err)
	}
	h.set(fd, sys.MulticastInterface, 7)

	six, addr6 := h.bound("[::1]:0")
	if err := h.k.BindToDevice(six, "lo"); err != nil {
		t.Fatal(err)
	}
	if err := h.sendWith(six, nil, addr6, sys.Control{Interface: 7}); err != syscall.EINVAL {
		t.Errorf("an IPv6 datagram by another interface than the socket's: %v", err)
	}
}

// TestKeptElsewhereDoesNotListen: the port is dead for those that do not come by the device.
func TestKeptElsewhereDoesNotListen(t *testing.T) {
	h := newHost(t)
	h.AddInterface(7, "wire")
	fd, addr := h.bound("127.0.0.1:0")
	if err := h.k.BindToDevice(fd, "wire"); err != nil {
		t.Fatal(err)
	}
	from, _ := h.bound("127.0.0.1:0")
	if err := h.k.Connect(from, addr); err != nil {
		t.Fatal(err)
	}
	if err := h.send(from, nil, netip.AddrPort{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.recv(from); err != syscall.ECONNREFUSED {
		t.Errorf("error is %v", err)
	}
}

func TestMembershipsRunOut(t *testing.T) {
	h := newHost(t)
	fd, _ := h.bound("0.0.0.0:0")
	group := netip.MustParseAddr("239.0.0.0")
	for range 20 {
		group = group.Next()
		if err := h.k.Membership(fd, sys.Membership{Group: group}, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.k.Membership(fd, sys.Membership{Group: group.Next()}, true); err != syscall.ENOBUFS {
		t.Errorf("one more: %v", err)
	}
}

// TestGroupWithoutAnInterface: who names none, to join and to send, means the loopback.
func TestGroupWithoutAnInterface(t *testing.T) {
	for local, group := range map[string]string{"0.0.0.0:0": "239.1.2.3", "[::]:0": "ff02::7"} {
		h := newHost(t)
		from, _ := h.bound(local)
		to, addr := h.bound(local)
		m := sys.Membership{Group: netip.MustParseAddr(group)}
		dest := netip.AddrPortFrom(m.Group, addr.Port())
		for range 2 {
			if err := h.k.Membership(to, m, true); err != nil {
				t.Fatal(err)
			}
			if err := h.send(from, []byte("x"), dest); err != nil {
				t.Fatal(err)
			}
			if got, err := h.recv(to); string(got.Buf) != "x" {
				t.Errorf("%s: got %q, %v", group, got.Buf, err)
			}
			if err := h.k.Membership(to, m, false); err != nil {
				t.Fatal(err)
			}
			if err := h.send(from, []byte("x"), dest); err != nil {
				t.Fatal(err)
			}
			h.silent(to, "it has left")
		}
	}
}

// TestCloseAddedOfADuplicate counts the descriptor that was in the poller, not its duplicate.
func TestCloseAddedOfADuplicate(t *testing.T) {
	h := newHost(t)
	fd, _ := h.bound("127.0.0.1:0")
	p := h.poller()
	dup, err := h.k.Duplicate(fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Add(fd, poll.Write, 1); err != nil {
		t.Fatal(err)
	}
	h.k.Close(dup)
	if n := h.Calls().CloseAdded; n != 0 {
		t.Errorf("%d closes of a descriptor in a poller", n)
	}
	h.k.Close(fd)
	if n := h.Calls().CloseAdded; n != 1 {
		t.Errorf("%d closes of a descriptor in a poller, want 1", n)
	}
}
