package weir

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// floodEnv asks the test program to be a sender instead: "address datagrams-per-second duration".
const floodEnv = "WEIR_TEST_FLOOD"

// startFlood starts a process that sends 64-byte datagrams to an address, evenly at a rate or, at rate 0, as
// fast as it can. It ends by itself, and when the test does.
func startFlood(t *testing.T, to netip.AddrPort, rate int, d time.Duration) (sent func() int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), floodEnv+"="+fmt.Sprint(to, " ", rate, " ", int64(d)))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() (n int) {
		if stopped {
			return 0
		}
		stopped = true
		_ = in.Close()
		fmt.Fscan(out, &n)
		if err := cmd.Wait(); err != nil {
			t.Error("flood: ", err)
		}
		return n
	}
	t.Cleanup(func() { stop() })
	return stop
}

// flood is the process that startFlood starts.
func flood(spec string) error {
	var to string
	var rate int
	var ns int64
	if _, err := fmt.Sscan(spec, &to, &rate, &ns); err != nil {
		return err
	}
	k := sys.New()
	fd, _, err := sock.OpenUDP(k, sock.UDPOptions{Local: loopback4})
	if err != nil {
		return err
	}
	defer k.Close(fd)
	parentGone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(parentGone)
	}()

	const burst = 10
	b := sys.NewSendBatch(burst)
	for i := range b.Msgs {
		b.Msgs[i] = sys.Message{Buf: make([]byte, 64), Addr: netip.MustParseAddrPort(to)}
	}
	sent := 0
	for start := time.Now(); time.Since(start) < time.Duration(ns); {
		select {
		case <-parentGone:
			ns = 0
			continue
		default:
		}
		if rate > 0 && float64(sent) > time.Since(start).Seconds()*float64(rate) {
			continue
		}
		n, err := k.Send(fd, b, 0, burst)
		if err != nil && n == 0 {
			continue // the receiver is gone or its buffer full: loopback tells some of that to senders
		}
		sent += n
	}
	fmt.Println(sent)
	return nil
}
