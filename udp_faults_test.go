package weir

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestUDPWithoutAddress: a socket whose address the kernel does not tell is not opened, as nobody could dial it.
func TestUDPWithoutAddress(t *testing.T) {
	t.Parallel()
	n := memsys.New()
	l := newLoop(t, Config{Kernel: NewKernel(n.Backend()), Faults: plan(t, "getsockname#1=ENOBUFS")})
	u, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{})
	if u != nil || !errors.Is(err, syscall.ENOBUFS) || !strings.Contains(err.Error(), "getsockname") {
		t.Errorf("ListenUDP: %v, %v", u, err)
	}
	if c := n.Calls(); c.Close != 1 || c.Add != 0 {
		t.Errorf("%d closes, %d adds", c.Close, c.Add)
	}
	if u, err = l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{}); err != nil || u.LocalAddr().Port() == 0 {
		t.Errorf("the second ListenUDP: %v, %v", u, err)
	}
}

// TestLostWake: a wake that fails once is made again, so that a loop that waits hears of its Stop.
func TestLostWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, Config{Kernel: NewKernel(memsys.New().Backend()), Faults: plan(t, "wake#1x2=EAGAIN")})
		go func() {
			time.Sleep(time.Second)
			l.Stop(-1)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
		if hits := l.Faults().Hits(); hits[0] != 2 {
			t.Errorf("%v wakes failed, want 2", hits)
		}
	})
}

// TestUDPStaleForEver: an errno that may be a report's, but is the answer to each receive, as a filter's, keeps no
// processor busy, and the socket is well when it ends.
func TestUDPStaleForEver(t *testing.T) {
	for _, errno := range []string{"EACCES", "ECONNREFUSED"} {
		inBubble(t, func(t *testing.T, n *memsys.Net) {
			l := newLoop(t, Config{Kernel: NewKernel(n.Backend()), Faults: plan(t, "recv#1x70="+errno)})
			got, start := time.Duration(0), time.Now()
			u, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{OnDatagram: func(*UDP, *Datagram) {
				got = time.Since(start)
				_ = l.Close()
			}})
			if err != nil {
				t.Fatal(err)
			}
			if err := u.Send(nil, u.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			run(t, l)
			// A visit makes two. The first eight visits come at once, the other 28 after 10 ms, 20 ms, and then 40 each.
			if want := 3*shortestRest + 26*longestStaleRest; got != want {
				t.Errorf("%s: the datagram came after %v, want %v", errno, got, want)
			}
			if waits := n.Calls().WaitNow + n.Calls().WaitBlocking; waits > 4*71 {
				t.Errorf("%s: %d waits", errno, waits)
			}
		})
	}
}

// TestUDPStaleNowAndThen: errors that are seconds apart are no row, whatever their number, so the socket does not
// rest after one.
func TestUDPStaleNowAndThen(t *testing.T) {
	inBubble(t, func(t *testing.T, n *memsys.Net) {
		l := newLoop(t, Config{Kernel: NewKernel(n.Backend())})
		nobody := netip.MustParseAddrPort("127.0.0.1:9") // weir:port in memory
		errs := 0
		u, err := l.DialUDP(netip.AddrPort{}, nobody, UDPConfig{}, UDPHandler{OnError: func(u *UDP, _ error) {
			errs++
			if u.resting {
				t.Errorf("rests after error %d", errs)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		l.Every(3*time.Second, func() {
			if errs == 20 {
				_ = l.Close()
			}
			_ = u.Send([]byte("anybody?"), netip.AddrPort{})
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Errorf("%d errors: %v", errs, err)
		}
	})
}
