package dgram

import (
	"net"
	"testing"
)

const benchBytes = 1200

// benchConn is what is measured: a Conn and its oracle.
var benchConns = []struct {
	name string
	open func(b *testing.B) udpConn
}{
	{"dgram", func(b *testing.B) udpConn { return listen(b, loopback4, Config{}) }},
	{"net", func(b *testing.B) udpConn { return stdListen(b, "udp", loopback4) }},
}

// BenchmarkEcho sends a datagram and waits for it.
func BenchmarkEcho(b *testing.B) {
	for _, row := range benchConns {
		b.Run(row.name, func(b *testing.B) {
			c := row.open(b)
			to := c.LocalAddr().(*net.UDPAddr).AddrPort()
			out, in := make([]byte, benchBytes), make([]byte, 2*benchBytes)
			b.SetBytes(benchBytes)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.WriteToUDPAddrPort(out, to); err != nil {
					b.Fatal(err)
				}
				if _, _, err := c.ReadFromUDPAddrPort(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBatch sends 32 datagrams at once and reads them.
func BenchmarkBatch(b *testing.B) {
	c := listen(b, loopback4, Config{RecvBufferBytes: 1 << 20})
	out, in := messages(32, benchBytes), messages(32, 2*benchBytes)
	for i := range out {
		out[i].Addr = c.LocalAddr()
	}
	b.SetBytes(32 * benchBytes)
	b.ReportAllocs()
	for b.Loop() {
		if n, err := c.WriteBatch(out, 0); n != len(out) || err != nil {
			b.Fatal(n, err)
		}
		for n := 0; n < len(out); {
			got, err := c.ReadBatch(in, 0)
			if err != nil {
				b.Fatal(err)
			}
			n += got
		}
	}
}
