//go:build linux

package sys_test

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
	"github.com/weirnet/weir/internal/sys/systest"
)

func TestMain(m *testing.M) {
	if err := systest.RefuseIfAsked(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestRefusedBatches: where a filter refuses the batched calls, single ones stand in for them with the same
// contract, and no more than one batched call of a kind is tried.
func TestRefusedBatches(t *testing.T) {
	if systest.Refused() {
		systest.Run(t, func(*testing.T) poll.Backend { return poll.Native() })
		k := sys.New()
		for range 3 {
			passBatch(t, k)
		}
		recv, send := sys.Refusals(k)
		fmt.Printf("refused: recvmmsg %d, sendmmsg %d\n", recv, send)
		recvWhy, sendWhy := k.Unbatched()
		fmt.Printf("why: %v, %v\n", errnoName(recvWhy), errnoName(sendWhy))
		return
	}
	for _, spec := range systest.Refusals() {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			calls, errno, _ := strings.Cut(spec, " ")
			recv, send := strings.Count(calls, "recvmmsg"), strings.Count(calls, "sendmmsg")
			why := []string{"none", errno}
			want := fmt.Sprintf("refused: recvmmsg %d, sendmmsg %d\nwhy: %s, %s\n", recv, send, why[recv], why[send])
			if out := systest.RunRefused(t, "TestRefusedBatches", spec); !strings.Contains(out, want) {
				t.Errorf("want %sgot %s", want, out)
			}
		})
	}
}

func errnoName(err error) string {
	errno, ok := err.(syscall.Errno)
	if !ok {
		return "none"
	}
	return unix.ErrnoName(errno)
}

// TestUnbatched: "nil where they move many".
func TestUnbatched(t *testing.T) {
	many := sys.New()
	passBatch(t, many)
	if recv, send := many.Unbatched(); recv != nil || send != nil {
		t.Errorf("the kernel moves one a call for %v, %v", recv, send)
	}
	single := sys.NewSingle()
	passBatch(t, single)
	if recv, send := single.Unbatched(); recv != syscall.EOPNOTSUPP || send != syscall.EOPNOTSUPP {
		t.Errorf("single calls are made for %v, %v", recv, send)
	}
}

// passBatch sends 20 datagrams to a socket and receives them.
func passBatch(t *testing.T, k sys.Kernel) {
	t.Helper()
	const n = 20
	var fds [2]int
	for i := range fds {
		fd, err := k.Socket(sys.IPv4, sys.UDP)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close(fd)
		if err := k.Bind(fd, netip.MustParseAddrPort("127.0.0.1:0")); err != nil {
			t.Fatal(err)
		}
		fds[i] = fd
	}
	to, err := k.LocalAddr(fds[1])
	if err != nil {
		t.Fatal(err)
	}
	out, in := sys.NewSendBatch(n), sys.NewRecvBatch(32, 64)
	for i := range out.Msgs {
		out.Msgs[i] = sys.Message{Buf: []byte{byte(i)}, Addr: to}
	}
	if sent, err := k.Send(fds[0], out, 0, n); sent != n || err != nil {
		t.Fatalf("Send: %d, %v", sent, err)
	}
	if got, err := k.Recv(fds[1], in, 32); got != n || err != nil {
		t.Fatalf("Recv: %d, %v", got, err)
	}
	for i := range n {
		if len(in.Msgs[i].Buf) != 1 || in.Msgs[i].Buf[0] != byte(i) {
			t.Errorf("datagram %d is %v", i, in.Msgs[i].Buf)
		}
	}
	if _, err := k.Recv(fds[1], in, 32); err != syscall.EAGAIN {
		t.Errorf("an empty socket answers %v", err)
	}
}

// TestRefusedBySingleCallToo: where the single call answers the same, that is the answer, and the batched call is not
// tried again.
func TestRefusedBySingleCallToo(t *testing.T) {
	if systest.Refused() {
		k := sys.New()
		fd, err := k.Socket(sys.IPv4, sys.UDP)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close(fd)
		b := sys.NewSendBatch(2)
		for i := range b.Msgs {
			b.Msgs[i] = sys.Message{Addr: netip.MustParseAddrPort("127.0.0.1:1")} // weir:port nothing gets there
		}
		for range 3 {
			if n, err := k.Send(fd, b, 0, 2); n != 0 || err != syscall.EPERM {
				t.Errorf("Send: %d, %v", n, err)
			}
		}
		_, send := sys.Refusals(k)
		fmt.Printf("tried: sendmmsg %d\n", send)
		return
	}
	const want = "tried: sendmmsg 1\n"
	if out := systest.RunRefused(t, "TestRefusedBySingleCallToo", "sendmmsg,sendmsg EPERM"); !strings.Contains(out, want) {
		t.Errorf("want %sgot %s", want, out)
	}
}
