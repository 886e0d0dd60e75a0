//go:build linux

package dgram

import (
	"encoding/binary"
	"net"
	"testing"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// cmsg is a control message as the kernel takes it.
func cmsg(level, typ int32, data ...byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	if unix.SizeofPtr == 8 {
		binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(len(data))))
	} else {
		binary.NativeEndian.PutUint32(b, uint32(unix.CmsgLen(len(data))))
	}
	binary.NativeEndian.PutUint32(b[unix.SizeofPtr:], uint32(level))
	binary.NativeEndian.PutUint32(b[unix.SizeofPtr+4:], uint32(typ))
	copy(b[unix.CmsgLen(0):], data)
	return b
}

// tos is the traffic class of a datagram, over IPv4.
func tos(class uint32) []byte {
	return cmsg(unix.IPPROTO_IP, unix.IP_TOS, binary.NativeEndian.AppendUint32(nil, class)...)
}

// segmentOf is the size of the datagrams of a train.
func segmentOf(bytes int) []byte {
	return cmsg(unix.IPPROTO_UDP, unix.UDP_SEGMENT, binary.NativeEndian.AppendUint16(nil, uint16(bytes))...)
}

// sourceOf has a datagram sent from an address.
func sourceOf(ip net.IP) []byte {
	return (&ipv4.ControlMessage{Src: ip}).Marshal()
}

// classOf is the traffic class that came with a datagram.
func classOf(t testing.TB, oob []byte) byte {
	t.Helper()
	all, err := unix.ParseSocketControlMessage(oob)
	must(t, err)
	for _, m := range all {
		if m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_TOS || m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_TCLASS {
			return m.Data[0]
		}
	}
	t.Fatalf("no traffic class in % x", oob)
	return 0
}

// setOption sets an option as a program does that has the Conn's descriptor.
func setOption(t testing.TB, c *Conn, level, option, value int) {
	t.Helper()
	raw, err := c.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) }))
	must(t, err)
}

// descriptor is a Conn's, for calls while it is open.
func descriptor(t testing.TB, c *Conn) (fd int) {
	t.Helper()
	raw, err := c.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(d uintptr) { fd = int(d) }))
	return fd
}

func needGSO(t testing.TB, c *Conn) {
	t.Helper()
	if !c.Stats().Paths.GSO {
		t.Skip("no GSO")
	}
}

func needGRO(t testing.TB, c *Conn) {
	t.Helper()
	if !c.Stats().Paths.GRO {
		t.Skip("no GRO")
	}
}

func sendTrain(t testing.TB, c, to *Conn, payload string, segment int) {
	t.Helper()
	oob := segmentOf(segment)
	n, oobn, err := c.WriteMsgUDP([]byte(payload), oob, to.LocalAddr().(*net.UDPAddr))
	if n != len(payload) || oobn != len(oob) || err != nil {
		t.Fatalf("a train: %d, %d, %v", n, oobn, err)
	}
}

func messagesTo(to *Conn, payloads ...string) (ms []ipv4.Message) {
	for _, p := range payloads {
		ms = append(ms, message(to.LocalAddr(), p))
	}
	return ms
}
