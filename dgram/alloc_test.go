package dgram

import (
	"net"
	"testing"
)

// TestAllocs: a datagram makes no garbage, sent and received by each pair of calls, over IPv4 and IPv6.
func TestAllocs(t *testing.T) {
	for _, address := range []string{loopback4, loopback6, "[::]:0"} {
		if address != loopback4 {
			needIPv6(t)
		}
		a, b := listen(t, address, Config{}), listen(t, address, Config{})
		to := addrOf(b)
		if to.Addr().IsUnspecified() {
			to = addrOfPort("127.0.0.1", b)
		}
		name := net.UDPAddrFromAddrPort(to)
		payload, buf, oob := make([]byte, 100), make([]byte, 2000), make([]byte, 100)
		out, in := messages(4, 100), messages(4, 2000)
		for i := range out {
			out[i].Addr = name
		}
		for call, both := range map[string]func() error{
			"AddrPort": func() error {
				if _, err := a.WriteToUDPAddrPort(payload, to); err != nil {
					return err
				}
				_, _, err := b.ReadFromUDPAddrPort(buf)
				return err
			},
			"UDPAddr": func() error {
				if _, err := a.WriteToUDP(payload, name); err != nil {
					return err
				}
				_, _, err := b.ReadFromUDP(buf)
				return err
			},
			"Addr": func() error {
				if _, err := a.WriteTo(payload, name); err != nil {
					return err
				}
				_, _, err := b.ReadFrom(buf)
				return err
			},
			"Msg": func() error {
				if _, _, err := a.WriteMsgUDP(payload, nil, name); err != nil {
					return err
				}
				_, _, _, _, err := b.ReadMsgUDP(buf, oob)
				return err
			},
			"MsgAddrPort": func() error {
				if _, _, err := a.WriteMsgUDPAddrPort(payload, nil, to); err != nil {
					return err
				}
				_, _, _, _, err := b.ReadMsgUDPAddrPort(buf, oob)
				return err
			},
			"Batch": func() error {
				if _, err := a.WriteBatch(out, 0); err != nil {
					return err
				}
				for n := 0; n < len(out); {
					got, err := b.ReadBatch(in, 0)
					if err != nil {
						return err
					}
					n += got
				}
				return nil
			},
		} {
			var err error
			n := testing.AllocsPerRun(200, func() {
				if e := both(); e != nil {
					err = e
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if n != 0 && !raceEnabled {
				t.Errorf("%s by %s: %v allocations", address, call, n)
			}
		}
	}
}
