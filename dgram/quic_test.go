//go:build linux

package dgram

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/sys"
	"github.com/weirnet/weir/internal/sys/systest"
)

// quicBytes goes each way; less where the race detector makes all slow.
func quicBytes() int {
	if raceEnabled {
		return 1 << 20
	}
	return 4 << 20
}

func quicTransfer(t *testing.T, bytes int, server, client Config) *transfer {
	t.Helper()
	x := &transfer{bytes: bytes, patience: patience, server: listen(t, loopback4, server), client: listen(t, loopback4, client)}
	x.serverTLS, x.clientTLS = quicTLS(t)
	return x
}

// TestQUIC: quic-go takes a Conn as it is, finds all of its fast paths, and moves megabytes each way.
func TestQUIC(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"all": {}, "NoGSO": {NoGSO: true}, "NoGRO": {NoGRO: true}, "NoBatches": {NoBatches: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := quicTransfer(t, quicBytes(), cfg, cfg)
			before := x.client.Stats().Paths
			must(t, x.run(t.Context()))
			s := x.client.Stats()
			if before.GSO && s.SentJoined < s.Sent/2 {
				t.Errorf("%d of %d went joined", s.SentJoined, s.Sent)
			}
			if s.SendLost != 0 || s.Truncated != 0 || s.ReceiveErrors != 0 || s.Paths != before {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestQUICFaults: what the system does to sends, on either side, ends no connection: the transfer completes.
func TestQUICFaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"send#60x40=EPERM", "send#60x40=ENOBUFS", "send#60x40=ENETUNREACH", "send#60x40=EHOSTUNREACH", "send#60x40=EINVAL",
		"send#2=EAGAIN", "send#2x5=EAGAIN", "send#60x20=EAGAIN", "send#1=ECONNREFUSED", "send#70=ECONNREFUSED", "send#1=EPERM",
		"send#40x4=EIO", "send#40x4=EINVAL", "send%0.05=EIO", "send%0.05=EPERM", "send%0.05=ENOBUFS", "send%0.1=EAGAIN",
		"send#60x20=drop", "recv%0.2=ECONNREFUSED", "recv%0.2=EHOSTUNREACH", "recv#20x20=ENOMEM", "recv#1x3=ECONNREFUSED",
	} {
		for _, side := range []string{"server", "client"} {
			t.Run(text+" of the "+side, func(t *testing.T) {
				t.Parallel()
				faults := Config{Faults: plan(t, text)}
				server, client := faults, Config{}
				if side == "client" {
					server, client = client, server
				}
				x := quicTransfer(t, quicBytes(), server, client)
				must(t, x.run(t.Context()))
				at := x.server
				if side == "client" {
					at = x.client
				}
				if at.Faults().Hits()[0] == 0 {
					t.Errorf("no call was hit: %v", at.Faults().Calls())
				}
			})
		}
	}
}

// gatedKernel refuses sends for a while, from one on.
type gatedKernel struct {
	sys.Kernel
	first int64
	calls atomic.Int64
	until atomic.Pointer[time.Time]
}

func (k *gatedKernel) Send(fd int, b *sys.SendBatch, from, to int) (int, error) {
	if k.calls.Add(1) == k.first {
		end := time.Now().Add(time.Second)
		k.until.Store(&end)
	}
	if end := k.until.Load(); end != nil && time.Now().Before(*end) {
		return 0, syscall.EPERM
	}
	return k.Kernel.Send(fd, b, from, to)
}

// TestQUICBlackout: for a second, in the middle, every send is refused, as a firewall does that is being loaded.
func TestQUICBlackout(t *testing.T) {
	t.Parallel()
	for name, side := range map[string]func(*transfer) *Conn{
		"server": func(x *transfer) *Conn { return x.server }, "client": func(x *transfer) *Conn { return x.client },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := quicTransfer(t, 4*quicBytes(), Config{}, Config{})
			c := side(x)
			c.kernel = &gatedKernel{Kernel: c.kernel, first: 60}
			must(t, x.run(t.Context()))
			if s := c.Stats(); s.SendErrors.Lost == 0 {
				t.Errorf("nothing was refused: %+v", s.SendErrors)
			}
		})
	}
}

// TestQUICPathMTU: on a path that takes 1400 bytes each larger datagram is refused, and the transfer completes: discovery of
// the path's MTU hears EMSGSIZE.
func TestQUICPathMTU(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "ip link set lo mtu 1400")
	x := quicTransfer(t, quicBytes(), Config{}, Config{})
	must(t, x.run(t.Context()))
	s := x.client.Stats()
	if s.SendErrors.Size == 0 || s.SendErrors.Size > 50 {
		t.Errorf("%d were too large: %+v", s.SendErrors.Size, s)
	}
}

// TestQUICFirewall: a rule that comes and goes during a transfer.
func TestQUICFirewall(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "nft add table inet t", "nft add chain inet t out { type filter hook output priority 0 ; }")
	x := quicTransfer(t, 4*quicBytes(), Config{}, Config{})
	done := make(chan error, 1)
	go func() { done <- x.run(t.Context()) }()
	for range 3 {
		time.Sleep(silence)
		systest.Configure(t, fmt.Sprintf("nft add rule inet t out udp dport %d drop", addrOf(x.server).Port()))
		time.Sleep(4 * silence)
		systest.Configure(t, "nft flush chain inet t out")
	}
	must(t, <-done)
	if s := x.client.Stats(); s.SendErrors.Lost == 0 {
		t.Skip("it was over before the rule was there")
	}
}
