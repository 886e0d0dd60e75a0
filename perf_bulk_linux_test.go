//go:build perf && linux

package weir

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bulkEnv asks the test program to send or receive in bulk: "weir send PORT BYTES SECONDS", "std recv BYTES SECONDS".
// It then does what testdata/bulk.c does.
const bulkEnv = "WEIR_TEST_BULK"

const bulkBytes = 1200

// runBulk is the process that is asked for.
func runBulk(words string) error {
	spec := strings.Fields(words)
	number := func(i int) float64 {
		f, _ := strconv.ParseFloat(spec[i], 64)
		return f
	}
	seconds := func(i int) time.Duration { return time.Duration(number(i) * float64(time.Second)) }
	switch spec[0] + " " + spec[1] {
	case "weir send":
		return weirSend(int(number(2)), int(number(3)), seconds(4))
	case "weir recv":
		return weirRecv(seconds(3))
	case "std send":
		return stdSend(int(number(2)), int(number(3)), seconds(4))
	case "std recv":
		return stdRecv(seconds(3))
	default:
		return fmt.Errorf("unknown program %q", words)
	}
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func loopbackPort(port int) netip.AddrPort {
	return netip.AddrPortFrom(loopback4.Addr(), uint16(port))
}

func weirSend(port, bytes int, d time.Duration) error {
	l, err := New(Config{StopWhenIdle: true})
	if err != nil {
		return err
	}
	u, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{})
	if err != nil {
		return err
	}
	payload, to := make([]byte, bytes), loopbackPort(port)
	start := cpu()
	end := time.Now().Add(d)
	var more func()
	more = func() {
		for range 200 {
			if u.Send(payload, to) != nil {
				break
			}
		}
		if l.Now().Before(end) {
			l.NextTurn(more)
		} else {
			_ = l.Close()
		}
	}
	l.NextTurn(more)
	if err := l.Run(context.Background()); err != nil {
		return err
	}
	fmt.Println(u.Stats().Sent, int64(cpu()-start))
	return nil
}

func weirRecv(d time.Duration) error {
	l, err := New(Config{})
	if err != nil {
		return err
	}
	got, start, sum := 0, time.Duration(0), byte(0)
	u, err := l.ListenUDP(loopback4, UDPConfig{RecvBufferBytes: 4 << 20}, UDPHandler{OnDatagram: func(_ *UDP, m *Datagram) {
		if got == 0 {
			start = cpu()
			l.AfterFunc(d, func() { _ = l.Close() })
		}
		got++
		sum += m.Payload[0]
	}})
	if err != nil {
		return err
	}
	fmt.Println(u.LocalAddr().Port())
	if err := l.Run(context.Background()); err != nil {
		return err
	}
	fmt.Println(got, int64(cpu()-start))
	return nil
}

func stdSend(port, bytes int, d time.Duration) error {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	payload, to, sent := make([]byte, bytes), loopbackPort(port), 0
	start := cpu()
	for end := time.Now().Add(d); time.Now().Before(end); {
		if _, err := c.WriteToUDPAddrPort(payload, to); err != nil {
			return err
		}
		sent++
	}
	fmt.Println(sent, int64(cpu()-start))
	return nil
}

func stdRecv(d time.Duration) error {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	if err := c.SetReadBuffer(4 << 20); err != nil {
		return err
	}
	fmt.Println(c.LocalAddr().(*net.UDPAddr).Port)
	buf, got, start, sum := make([]byte, 65535), 0, time.Duration(0), byte(0)
	for {
		if _, _, err := c.ReadFromUDPAddrPort(buf); err != nil {
			break
		}
		if got == 0 {
			start = cpu()
			_ = c.SetReadDeadline(time.Now().Add(d))
		}
		got++
		sum += buf[0]
	}
	fmt.Println(got, int64(cpu()-start))
	return nil
}

// bulk are the programs to measure.
type bulk struct {
	t *testing.T
	c string // the C program
}

func newBulk(t *testing.T) *bulk {
	t.Helper()
	b := &bulk{t: t, c: filepath.Join(t.TempDir(), "bulk")}
	if out, err := exec.Command("cc", "-O2", "-o", b.c, "testdata/bulk.c").CombinedOutput(); err != nil {
		t.Skipf("no C compiler: %v\n%s", err, out)
	}
	return b
}

func (b *bulk) command(who, core string, args ...string) *exec.Cmd {
	path, env := b.c, []string(nil)
	if who != "c" {
		path, env = os.Args[0], []string{bulkEnv + "=" + who + " " + strings.Join(args, " ")}
		args = nil
	}
	if taskset, err := exec.LookPath("taskset"); err == nil {
		args = append([]string{"-c", core, path}, args...)
		path = taskset
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// bulkResult is processor time for datagrams that arrived.
type bulkResult struct {
	sent, got      float64
	sendNS, recvNS float64 // a datagram that was sent, and received
}

// total is the time for a datagram that arrived, on both sides.
func (r bulkResult) total() float64 { return (r.sendNS*r.sent + r.recvNS*r.got) / r.got }

// pair sends from one program to another.
func (b *bulk) pair(sender, receiver string) (r bulkResult) {
	b.t.Helper()
	const seconds = 1.0
	fail := func(err error) {
		if err != nil {
			b.t.Fatal(sender, " to ", receiver, ": ", err)
		}
	}
	recv := b.command(receiver, "0", "recv", fmt.Sprint(bulkBytes), fmt.Sprint(seconds))
	pipe, err := recv.StdoutPipe()
	fail(err)
	fail(recv.Start())
	out := bufio.NewReader(pipe)
	var port int
	var ns float64
	_, err = fmt.Fscan(out, &port)
	fail(err)
	sent, err := b.command(sender, "1", "send", fmt.Sprint(port), fmt.Sprint(bulkBytes), fmt.Sprint(seconds+0.3)).Output()
	fail(err)
	_, err = fmt.Sscan(string(sent), &r.sent, &ns)
	fail(err)
	r.sendNS = ns / r.sent
	_, err = fmt.Fscan(out, &r.got, &ns)
	fail(err)
	fail(recv.Wait())
	r.recvNS = ns / r.got
	return r
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// TestPerfBulk: datagrams of 1200 bytes over the loopback between two processes, with GSO and GRO, by processor time
// a datagram against a C program that makes the same system calls.
func TestPerfBulk(t *testing.T) {
	b := newBulk(t)
	attempts(t, func() string {
		const rounds = 9
		var both, recv, send, std []float64
		var last [4]bulkResult
		for range rounds {
			cc, ww, cw, wc := b.pair("c", "c"), b.pair("weir", "weir"), b.pair("c", "weir"), b.pair("weir", "c")
			both = append(both, cc.total()/ww.total())
			recv = append(recv, cc.recvNS/cw.recvNS)
			send = append(send, cc.sendNS/wc.sendNS)
			last = [4]bulkResult{cc, ww, cw, wc}
		}
		for range 3 {
			ss := b.pair("std", "std")
			std = append(std, ss.total()/last[1].total())
		}
		t.Logf("c to c %.0f + %.0f ns, weir to weir %.0f + %.0f, c to weir %.0f, weir to c %.0f",
			last[0].sendNS, last[0].recvNS, last[1].sendNS, last[1].recvNS, last[2].recvNS, last[3].sendNS)
		t.Logf("datagrams per processor second, against C: both sides %.2f, receive side %.2f, send side %.2f; against std %.1f",
			median(both), median(recv), median(send), median(std))
		switch {
		case median(both) < 0.80:
			return fmt.Sprintf("both sides reach %.2f of C, want 0.80", median(both))
		case median(recv) < 0.90:
			return fmt.Sprintf("the receive side reaches %.2f of C, want 0.90", median(recv))
		}
		return ""
	})
}
