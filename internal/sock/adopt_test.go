package sock

import (
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// TestAdopt offers each kind of descriptor to each who adopts.
func TestAdopt(t *testing.T) {
	type adopter func(sys.Kernel, int) (int, sys.Description, error)
	onKernels(t, func(t *testing.T, k counted) {
		dir := t.TempDir()
		open := func(fd int, err error) int {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return fd
		}
		tcp, _, err := ListenTCP(k, TCPOptions{Local: addr("127.0.0.1:0")}, 0, 5)
		open(tcp, err)
		at, err := k.LocalAddr(tcp)
		conn, _, _, err2 := ConnectTCP(k, TCPOptions{}, at)
		open(conn, errors.Join(err, err2))
		udp, _, err := OpenUDP(k, UDPOptions{Local: netip.AddrPortFrom(addr("127.0.0.1:0").Addr(), 0)})
		open(udp, err)
		unix := listenAt(t, k, filepath.Join(dir, "socket"), 5)
		unixConn := open(ConnectUnix(k, filepath.Join(dir, "socket"), StreamSettings{}))
		gram := open(OpenUnixgram(k, "", "", StreamSettings{}))

		for _, row := range []struct {
			name                   string
			fd                     int
			d                      sys.Description // but for the cookie
			udp, stream, listener  error
			udpSays, says, listens string
		}{
			{"a UDP socket", udp, sys.Description{Family: sys.IPv4, Kind: sys.UDP},
				nil, syscall.EPROTOTYPE, syscall.EPROTOTYPE, "", "neither a TCP nor a unix stream socket", "neither a TCP nor a unix stream socket"},
			{"a TCP listener", tcp, sys.Description{Family: sys.IPv4, Kind: sys.TCP, Listening: true},
				syscall.EPROTOTYPE, syscall.EINVAL, nil, "not a UDP socket", "is a listener", ""},
			{"a TCP connection", conn, sys.Description{Family: sys.IPv4, Kind: sys.TCP},
				syscall.EPROTOTYPE, nil, syscall.EINVAL, "not a UDP socket", "", "is not a listener"},
			{"a unix listener", unix, sys.Description{Family: sys.UnixFamily, Kind: sys.UnixStream, Listening: true},
				syscall.EAFNOSUPPORT, syscall.EINVAL, nil, "not an internet socket", "is a listener", ""},
			{"a unix connection", unixConn, sys.Description{Family: sys.UnixFamily, Kind: sys.UnixStream},
				syscall.EAFNOSUPPORT, nil, syscall.EINVAL, "not an internet socket", "", "is not a listener"},
			{"unix datagrams", gram, sys.Description{Family: sys.UnixFamily, Kind: sys.Unixgram},
				syscall.EAFNOSUPPORT, syscall.EPROTOTYPE, syscall.EPROTOTYPE, "not an internet socket", "neither a TCP nor a unix", "neither a TCP nor a unix"},
			{"nothing", 1 << 20, sys.Description{}, syscall.EBADF, syscall.EBADF, syscall.EBADF, "descriptor 1048576", "descriptor 1048576", "descriptor 1048576"},
		} {
			for _, c := range []struct {
				name  string
				adopt adopter
				want  error
				says  string
			}{
				{"AdoptUDP", AdoptUDP, row.udp, row.udpSays},
				{"AdoptStream", AdoptStream, row.stream, row.says},
				{"AdoptListener", AdoptListener, row.listener, row.listens},
			} {
				before := len(k.open)
				own, d, err := c.adopt(k, row.fd)
				d.Cookie = 0
				switch {
				case c.want != nil:
					if own != -1 || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || len(k.open) != before {
						t.Errorf("%s of %s: %d, %v; want %v, %q", c.name, row.name, own, err, c.want, c.says)
					}
				case err != nil || own == row.fd || d != row.d || len(k.open) != before+1:
					t.Errorf("%s of %s: %d, %+v, %v; want %+v", c.name, row.name, own, d, err, row.d)
				}
			}
		}
	})
}

// TestAdoptLinger: with a time to linger close(2) would wait for the peer, so it is taken off; a reset that the owner
// wants is left.
func TestAdoptLinger(t *testing.T) {
	onKernels(t, func(t *testing.T, k counted) {
		tcp, _, err := ListenTCP(k, TCPOptions{Local: addr("127.0.0.1:0")}, 0, 5)
		at, err2 := k.LocalAddr(tcp)
		conn, _, _, err3 := ConnectTCP(k, TCPOptions{}, at)
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		for linger, want := range map[int]int{60: -1, 0: 0, -1: -1} {
			for fd, adopt := range map[int]func(sys.Kernel, int) (int, sys.Description, error){tcp: AdoptListener, conn: AdoptStream} {
				_ = k.SetOption(fd, sys.Linger, linger)
				own, _, err := adopt(k, fd)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := k.GetOption(own, sys.Linger); got != want || err != nil {
					t.Errorf("linger %d of descriptor %d becomes %d, %v; want %d", linger, fd, got, err, want)
				}
			}
		}
	})
}
