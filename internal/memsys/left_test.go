package memsys

import (
	"net/netip"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// TestNothingIsLeft closes all in each order of two, and looks for what would fill a Net that lives long.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, deferred := range []int{0, 1} {
		for _, linger := range []int{-1, 0} {
			for _, write := range []bool{false, true} {
				for _, clientFirst := range []bool{false, true} {
					n := New()
					k := kernel{n}
					l, client := leaveOne(t, k, deferred, linger, write)
					if clientFirst {
						l, client = client, l
					}
					for _, fd := range []int{l, client} {
						if err := k.Close(fd); err != nil {
							t.Fatal(err)
						}
					}
					if len(n.tcp.used)+len(n.tcp.accepted)+n.opened != 0 {
						t.Errorf("defer %d, linger %d, write %v, client first %v: %v, %v, %d left",
							deferred, linger, write, clientFirst, n.tcp.used, n.tcp.accepted, n.opened)
					}
				}
			}
		}
	}
}

// leaveOne makes a connection that waits in its listener's queue.
func leaveOne(t *testing.T, k kernel, deferred, linger int, write bool) (l, client int) {
	t.Helper()
	l, _ = k.Socket(sys.IPv4, sys.TCP)
	client, _ = k.Socket(sys.IPv4, sys.TCP)
	_ = k.SetOption(l, sys.DeferAccept, deferred)
	_ = k.SetOption(client, sys.Linger, linger)
	if err := k.Bind(l, netip.MustParseAddrPort("127.0.0.1:0")); err != nil {
		t.Fatal(err)
	}
	if err := k.Listen(l, 1); err != nil {
		t.Fatal(err)
	}
	addr, _ := k.LocalAddr(l)
	_ = k.Connect(client, addr)
	if write {
		v := sys.NewVector(1)
		v.Bufs = append(v.Bufs, []byte("x"))
		if _, err := k.Write(client, v, false); err != nil {
			t.Fatal(err)
		}
	}
	return l, client
}
