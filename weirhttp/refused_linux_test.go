//go:build linux

package weirhttp

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir/dgram"
	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/sys/systest"
)

// both is a Server and a Transport that speaks HTTP/3 alone to it, whose calls fail as the plans say.
type both struct {
	*serving
	tr *Transport
}

func serveBothSides(t *testing.T, server, client string, h http.HandlerFunc) both {
	t.Helper()
	s := &Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{testCert()}}}
	tcp, udp, err := Listen(t.Context(), "127.0.0.1:0", dgram.Config{Faults: faultPlan(t, server)})
	if err != nil {
		t.Fatal(err)
	}
	tr := &Transport{TLSClientConfig: servingClientTLS(), HTTP3: HTTP3Always, UDP: dgram.Config{Faults: faultPlan(t, client)}}
	t.Cleanup(func() { _ = tr.Close() })
	return both{serveOn(t, s, tcp, udp), tr}
}

func faultPlan(t *testing.T, text string) fault.Plan {
	t.Helper()
	p, err := fault.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fetch reads a response whole, and returns its size and the longest time between two reads.
func (b both) fetch(ctx context.Context) (bytes int, stall time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+b.addr+"/", nil)
	if err != nil {
		return 0, 0, err
	}
	res, err := b.tr.RoundTrip(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 3 {
		return 0, 0, fmt.Errorf("%s %s", res.Proto, res.Status)
	}
	last, buf := time.Now(), make([]byte, 64<<10)
	for {
		n, err := res.Body.Read(buf)
		bytes += n
		stall = max(stall, time.Since(last))
		last = time.Now()
		if err == io.EOF {
			return bytes, stall, nil
		}
		if err != nil {
			return bytes, stall, err
		}
	}
}

func pour(bytes int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", bytes)) }
}

// TestSendErrors: no error of a send, on either side, ends a connection or a request.
func TestSendErrors(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for _, plan := range []string{
		"send#1=EPERM", "send#1=ECONNREFUSED", "send#2=EAGAIN", "send#2x5=EAGAIN", "send#30x20=EPERM", "send#30x20=ENOBUFS",
		"send#30x20=ENETUNREACH", "send#20x3=EIO", "recv%0.2=ECONNREFUSED",
	} {
		for _, side := range []string{"server", "client"} {
			t.Run(plan+" of the "+side, func(t *testing.T) {
				t.Parallel()
				server, client := plan, ""
				if side == "client" {
					server, client = client, server
				}
				b := serveBothSides(t, server, client, pour(size))
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if n, _, err := b.fetch(ctx); err != nil || n != size {
					t.Errorf("%d bytes, %v", n, err)
				}
			})
		}
	}
}

// TestAllSendsRefused: a server that may not send at all neither spins nor ends; its clients get nothing.
func TestAllSendsRefused(t *testing.T) {
	b := serveBothSides(t, "send=EPERM", "", pour(1))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	before := processorTime()
	if _, _, err := b.fetch(ctx); err == nil {
		t.Error("there is an answer")
	}
	used, st := processorTime()-before, b.Stats()
	if sends := st.UDP[0].SendCalls; sends == 0 || sends > 1000 {
		t.Errorf("%d sends in a second", sends)
	}
	if used > time.Second {
		t.Errorf("%v of the processor's time in a second", used)
	}
	if st.UDP[0].SendErrors.Lost == 0 || st.UDP[0].Sent != 0 {
		t.Errorf("%+v", st.UDP[0])
	}
	t.Logf("%v of the processor's time, %d sends", used, st.UDP[0].SendCalls)
}

// TestVersionNegotiationRefused: an answer without a connection that is refused harms nobody.
func TestVersionNegotiationRefused(t *testing.T) {
	b := serveBothSides(t, "send#1=EPERM", "", pour(1))
	stranger, err := net.Dial("udp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	hail := make([]byte, 1200)
	hail[0] = 0xc0
	binary.BigEndian.PutUint32(hail[1:], 0x0a0a0a0a)
	hail[5] = 8
	before := processorTime()
	if _, err := stranger.Write(hail); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the answer to be refused", func() bool { return b.Stats().UDP[0].SendErrors.Lost+b.Stats().UDP[0].Sent == 1 })
	time.Sleep(100 * time.Millisecond)
	if used := processorTime() - before; used > time.Second {
		t.Errorf("%v of the processor's time", used)
	}
	if n, _, err := b.fetch(t.Context()); err != nil || n != 1 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestSmallPath: a path that takes 1400 bytes. Probes of its MTU are refused, a few of them, and the transfer goes on
// meanwhile.
func TestSmallPath(t *testing.T) { smallPath(t, 5*time.Second) }

// smallPath fails if nothing comes for so long.
func smallPath(t *testing.T, most time.Duration) {
	t.Helper()
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "ip link set lo mtu 1400")
	const size = 8 << 20
	b := serveBothSides(t, "", "", pour(size))
	n, stall, err := b.fetch(t.Context())
	if err != nil || n != size {
		t.Errorf("%d bytes, %v", n, err)
	}
	if stall > most {
		t.Errorf("nothing came for %v", stall)
	}
	t.Logf("nothing came for %v at most", stall)
	if refused := b.Stats().UDP[0].SendErrors.Size; refused == 0 || refused > 50 {
		t.Errorf("%d datagrams were too large", refused)
	}
}

// TestFirewall: a firewall that refuses what both send, for a second in the middle of a transfer, delays it.
func TestFirewall(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "nft add table inet t", "nft add chain inet t out { type filter hook output priority 0 ; }")
	const size = 32 << 20
	begun := make(chan struct{})
	b := serveBothSides(t, "", "", func(w http.ResponseWriter, _ *http.Request) {
		chunk := strings.Repeat("x", size/32)
		for i := range 32 {
			if i == 4 {
				close(begun)
			}
			_, _ = io.WriteString(w, chunk)
			time.Sleep(10 * time.Millisecond)
		}
	})
	done := make(chan error, 1)
	go func() {
		n, _, err := b.fetch(t.Context())
		if err == nil && n != size {
			err = fmt.Errorf("%d bytes", n)
		}
		done <- err
	}()
	<-begun
	systest.Configure(t, "nft add rule inet t out meta l4proto udp drop")
	time.Sleep(time.Second)
	systest.Configure(t, "nft flush chain inet t out")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := b.Stats().UDP[0]; s.SendErrors.Lost == 0 {
		t.Errorf("nothing was refused: %+v", s)
	}
}

// TestRefusedBatches: HTTP/3 under filters that refuse batched calls, at about the cost that it has without.
func TestRefusedBatches(t *testing.T) {
	if systest.Refused() {
		b := serveBothSides(t, "", "", pour(1<<20))
		before := processorTime()
		if n, _, err := b.fetch(t.Context()); err != nil || n != 1<<20 {
			t.Errorf("%d bytes, %v", n, err)
		}
		t.Logf("used %d ms; %+v", (processorTime() - before).Milliseconds(), b.Stats().UDP[0].Paths)
		return
	}
	used := func(spec string) (ms int) {
		out := systest.RunRefused(t, "TestRefusedBatches", spec)
		_, text, _ := strings.Cut(out, "used ")
		if _, err := fmt.Sscanf(text, "%d ms", &ms); err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		return ms
	}
	free := used("none ENOSYS")
	for _, spec := range systest.Refusals() {
		ms := used(spec)
		t.Logf("%s: %d ms of the processor's time; without a filter %d", spec, ms, free)
		if ms > 3*free+500 {
			t.Errorf("%s: %d ms of the processor's time; without a filter %d", spec, ms, free)
		}
	}
}
