//go:build linux

package weir

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestUDPAdoptErrors holds "must be a datagram INET socket, else a clear error", and that the descriptor stays the
// caller's.
func TestUDPAdoptErrors(t *testing.T) {
	l := newLoop(t, Config{})
	socket := func(family, kind, protocol int) func(t *testing.T) int {
		return func(t *testing.T) int {
			fd, err := syscall.Socket(family, kind|syscall.SOCK_CLOEXEC, protocol)
			if err != nil {
				t.Skip(err)
			}
			return fd
		}
	}
	for _, row := range []struct {
		name string
		open func(t *testing.T) int
		want error
		says string
	}{
		{"TCP", socket(syscall.AF_INET, syscall.SOCK_STREAM, 0), syscall.EPROTOTYPE, "is not a UDP socket"},
		{"UDP-Lite", socket(syscall.AF_INET, syscall.SOCK_DGRAM, 136), syscall.EPROTOTYPE, "is not a UDP socket"},
		{"ICMP", socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP), syscall.EPROTOTYPE, "is not a UDP socket"},
		{"unix", socket(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0), syscall.EAFNOSUPPORT, "is not an internet socket"},
		{"a file", func(t *testing.T) int {
			fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			return fd
		}, syscall.ENOTSOCK, "is not a socket"},
		{"none", func(*testing.T) int { return -1 }, syscall.EBADF, "descriptor -1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			fd := row.open(t)
			u, err := l.AdoptUDP(fd, UDPConfig{}, UDPHandler{})
			if u != nil {
				t.Fatal("adopted")
			}
			wantOpError(t, err, "adopt", row.want)
			if !strings.Contains(err.Error(), row.says) {
				t.Errorf("the error is %q, want it to say %q", err, row.says)
			}
			if fd >= 0 {
				if err := syscall.Close(fd); err != nil {
					t.Error("the descriptor is not there any more: ", err)
				}
			}
		})
	}
}

// TestUDPAdoptFile adopts what the standard library opened, and each family; a blocking socket does not block the
// loop.
func TestUDPAdoptFile(t *testing.T) {
	for _, network := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		t.Run(network, func(t *testing.T) {
			l := newLoop(t, Config{})
			c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addrPort(network)))
			if err != nil {
				t.Skip(err)
			}
			defer c.Close()
			f, err := c.File()
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			echoed := false
			u, err := l.AdoptUDPFile(f, UDPConfig{}, UDPHandler{OnDatagram: func(u *UDP, d *Datagram) {
				mustSend(t, u, "pong", d.Source)
				// An end that makes the socket blocking does so for all.
				if err := syscall.SetNonblock(int(u.fd), false); err != nil {
					t.Error(err)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			to := u.LocalAddr()
			if to.Addr().IsUnspecified() {
				to = addrPort(strings.Replace(to.String(), "[::]", "127.0.0.1", 1))
			}
			client := mustDial(t, l, netip.AddrPort{}, to, UDPConfig{}, UDPHandler{OnDatagram: func(*UDP, *Datagram) {
				echoed = true
				later(l, func() { _ = l.Close() })
			}})
			_ = client.Send([]byte("ping"), netip.AddrPort{})
			run(t, l)
			if !echoed {
				t.Error("no echo")
			}
		})
	}
	t.Run("closed", func(t *testing.T) {
		l := newLoop(t, Config{})
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		u, err := l.AdoptUDPFile(f, UDPConfig{}, UDPHandler{})
		if u != nil || err == nil || !strings.Contains(err.Error(), "adopt udp: use of closed file") {
			t.Errorf("%v, %v", u, err)
		}
	})
}

// TestUDPShutDown: a socket of which somebody who has it, too, ends a direction is ready and empty for ever. The loop
// does not spin, and ends a socket of which both directions are over.
func TestUDPShutDown(t *testing.T) {
	for _, row := range []struct {
		name           string
		how            int
		paused, closed bool
	}{
		{"receiving", syscall.SHUT_RD, false, false},
		{"receiving, paused", syscall.SHUT_RD, true, false},
		{"sending", syscall.SHUT_WR, false, false},
		{"both", syscall.SHUT_RDWR, false, true},
		{"both, paused", syscall.SHUT_RDWR, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLoop(t, Config{})
			got := 0
			var closed error
			u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{
				OnDatagram: func(*UDP, *Datagram) { got++ },
				OnClose:    func(_ *UDP, err error) { closed = err },
			})
			sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 3)
			if row.paused {
				u.Pause()
			}
			if err := syscall.Shutdown(u.fd, row.how); err != nil && err != syscall.ENOTCONN { // which does it nonetheless
				t.Fatal(err)
			}
			l.AfterFunc(200*time.Millisecond, func() { _ = l.Close() })
			run(t, l)
			const most = 20 * (emptyBeforeRest + 4) // in rests of 10 ms
			if turns := l.Turn(); turns > most {
				t.Errorf("%d turns in 200 ms, want at most %d", turns, most)
			}
			if row.closed != errors.Is(closed, syscall.ESHUTDOWN) || !row.paused && got != 3 {
				t.Errorf("got %d, closed by %v", got, closed)
			}
		})
	}
}
