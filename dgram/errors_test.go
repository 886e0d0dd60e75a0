//go:build linux

package dgram

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sendRow is what a send meets, and what is to come of it.
type sendRow struct {
	plan    string
	want    error // nil: the caller is told success
	arrives bool
	stats   SendErrors
	calls   uint64
}

var sendRows = []sendRow{
	// Once: the datagram is tried again, and passes.
	{"send#1=EPERM", nil, true, SendErrors{}, 2},
	{"send#1=ENOBUFS", nil, true, SendErrors{}, 2},
	{"send#1=EIO", nil, true, SendErrors{}, 2},
	{"send#1=EINVAL", nil, true, SendErrors{}, 2},
	{"send#1=EBADF", nil, true, SendErrors{}, 2},
	{"send#1=ENETUNREACH", nil, true, SendErrors{Stale: 1}, 2},
	{"send#1=ECONNREFUSED", nil, true, SendErrors{Stale: 1}, 2},
	{"send#1=EHOSTUNREACH", nil, true, SendErrors{Stale: 1}, 2},
	{"send#1=EACCES", nil, true, SendErrors{Stale: 1}, 2},
	{"send#1=EMSGSIZE", nil, true, SendErrors{Stale: 1}, 2},
	{"send#1=EAGAIN", nil, true, SendErrors{Wait: 1}, 2},
	{"send#1x5=EAGAIN", nil, true, SendErrors{Wait: 5}, 6},
	{"send#1=ECONNREFUSED; send#2=EAGAIN", nil, true, SendErrors{Stale: 1, Wait: 1}, 3},
	// For ever.
	{"send=EPERM", nil, false, SendErrors{Lost: 1}, 2},
	{"send=ENOBUFS", nil, false, SendErrors{Lost: 1}, 2},
	{"send=ENOMEM", nil, false, SendErrors{Lost: 1}, 2},
	{"send=ENETDOWN", nil, false, SendErrors{Lost: 1}, 2},
	{"send=EIO", nil, false, SendErrors{Lost: 1}, 2},
	{"send=EINVAL", nil, false, SendErrors{Caller: 1}, 2},
	{"send=EACCES", nil, false, SendErrors{Stale: 2, Caller: 1}, 3},
	{"send=ENETUNREACH", nil, false, SendErrors{Stale: 2, Lost: 1}, 3},
	{"send=ECONNREFUSED", nil, false, SendErrors{Stale: 2, Lost: 1}, 3},
	{"send=EHOSTUNREACH", nil, false, SendErrors{Stale: 2, Lost: 1}, 3},
	{"send=EMSGSIZE", syscall.EMSGSIZE, false, SendErrors{Stale: 2, Size: 1}, 3},
	{"send=EBADF", net.ErrClosed, false, SendErrors{Dead: 1}, 2},
	{"send=ENOTSOCK", net.ErrClosed, false, SendErrors{Dead: 1}, 2},
}

// TestSendErrors: "A datagram that the system refuses is lost as any datagram may be: counted by the kind of the error,
// and answered with success. Errors are what the caller did wrong, and EMSGSIZE".
func TestSendErrors(t *testing.T) {
	t.Parallel()
	for _, row := range sendRows {
		for _, batch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s batch=%v", row.plan, batch), func(t *testing.T) {
				t.Parallel()
				c, peer := listen(t, loopback4, Config{Faults: plan(t, row.plan)}), listen(t, loopback4, Config{})
				var n int
				var err error
				if batch {
					n, err = c.WriteBatch(messagesTo(peer, "x"), 0)
				} else {
					n, err = c.WriteTo([]byte("x"), peer.LocalAddr())
				}
				if !errors.Is(err, row.want) || row.want == nil && n != 1 || row.want != nil && n != 0 {
					t.Errorf("%d, %v; want %v", n, err, row.want)
				}
				var op *net.OpError
				var call *os.SyscallError
				if row.want != nil && (!errors.As(err, &op) || !errors.As(err, &call) || call.Syscall != "sendmsg") {
					t.Errorf("%v: no OpError, or it does not name the call", err)
				}
				s := c.Stats()
				lost := row.stats.Lost + row.stats.Caller + row.stats.Size
				sent := uint64(0)
				if row.arrives {
					sent = 1
				}
				if s.SendErrors != row.stats || s.SendCalls != row.calls || s.SendLost != lost || s.Sent != sent || s.SentBytes != sent {
					t.Errorf("%+v\n in %d calls, lost %d, sent %d; want %+v in %d", s.SendErrors, s.SendCalls, s.SendLost, s.Sent, row.stats, row.calls)
				}
				if row.arrives {
					wantNext(t, peer, "x")
				}
				wantSilence(t, peer)
			})
		}
	}
}

// TestSendErrorsInBatch: one that the system refuses costs only itself.
func TestSendErrorsInBatch(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		plan string
		want []string
	}{
		{"send#1x2=EPERM", []string{"2", "3", "4"}},
		{"send#1x3=ECONNREFUSED", []string{"2", "3", "4"}},
		{"send#1=EPERM", []string{"1", "2", "3", "4"}},
	} {
		c, peer := listen(t, loopback4, Config{Faults: plan(t, row.plan)}), listen(t, loopback4, Config{})
		if n, err := c.WriteBatch(messagesTo(peer, "1", "2", "3", "4"), 0); n != 4 || err != nil {
			t.Errorf("%s: %d, %v", row.plan, n, err)
		}
		wantNext(t, peer, row.want...)
		if s := c.Stats(); s.Sent != uint64(len(row.want)) || s.SendLost != uint64(4-len(row.want)) {
			t.Errorf("%s: %+v", row.plan, s)
		}
	}
	// Three that pass, one too large for the path, one behind it.
	c, peer := listen(t, loopback4, Config{Faults: plan(t, "send#1=short:3; send#2x3=EMSGSIZE")}), listen(t, loopback4, Config{})
	ms := messagesTo(peer, "1", "2", "3", "4", "5")
	if n, err := c.WriteBatch(ms, 0); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := c.WriteBatch(ms[3:], 0); n != 2 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	wantNext(t, peer, "1", "2", "3", "4", "5")
}

// TestSendBlockedForEver: "os.ErrDeadlineExceeded where the kernel's buffer stayed full"; Close ends it, too.
func TestSendBlockedForEver(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"send=EAGAIN", "send#1=ECONNREFUSED; send#2*=EAGAIN"} {
		c := listen(t, loopback4, Config{Faults: plan(t, text)})
		write := func() <-chan error {
			ended := make(chan error, 1)
			go func() {
				_, err := c.WriteTo([]byte("x"), c.LocalAddr())
				ended <- err
			}()
			return ended
		}
		began := time.Now()
		must(t, c.SetWriteDeadline(began.Add(100*time.Millisecond)))
		wantEnd(t, "the deadline", write(), os.ErrDeadlineExceeded)
		if took := time.Since(began); took < 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		must(t, c.SetWriteDeadline(time.Time{}))
		ended := write()
		time.Sleep(silence)
		must(t, c.SetWriteDeadline(time.Now()))
		wantEnd(t, "a deadline set meanwhile", ended, os.ErrDeadlineExceeded)
		must(t, c.SetWriteDeadline(time.Time{}))
		var many []<-chan error
		for range 5 {
			many = append(many, write())
		}
		time.Sleep(silence)
		must(t, c.Close())
		for _, ended := range many {
			wantEnd(t, "Close", ended, net.ErrClosed)
		}
	}
}

// TestTrainErrors: "A train of datagrams (UDP_SEGMENT) that the device or the path refuses goes out datagram by
// datagram; no later train is tried for that destination." It is logged once.
func TestTrainErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, plan     string
		smaller, other bool // trains of smaller segments, and for another destination, go as such
	}{
		{"EIO", "send#1x2=EIO; send#4x2=EIO", false, true},
		{"EINVAL", "send#1x2=EINVAL", true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var log syncBuffer
			c := listen(t, "0.0.0.0:0", Config{Faults: plan(t, row.plan), Logger: slog.New(slog.NewTextHandler(&log, nil))})
			needGSO(t, c)
			a, b := listen(t, loopback4, Config{}), listen(t, "127.0.0.2:0", Config{})
			train := strings.Repeat("1", 100) + strings.Repeat("2", 100) + "3"
			want := []string{strings.Repeat("1", 100), strings.Repeat("2", 100), "3"}
			sendTrain(t, c, a, train, 100)
			wantNext(t, a, want...)
			s := c.Stats()
			if s.SentJoined != 0 || s.Sent != 3 || s.SendLost != 0 || s.SendErrors != (SendErrors{Offload: 2}) || s.SendCalls != 3 || !s.Paths.GSO {
				t.Errorf("%+v", s)
			}
			if row.name == "EIO" { // the next two calls fail, too: of a single datagram it is nobody's offload
				return
			}
			sendTrain(t, c, a, train, 100)
			wantNext(t, a, want...)
			if s := c.Stats(); s.SentJoined != 0 || s.Sent != 6 || s.SendErrors.Offload != 2 {
				t.Errorf("the second train: %+v", s)
			}
			sendTrain(t, c, a, train[:180], 90)
			sendTrain(t, c, b, train, 100)
			wantNext(t, a, train[:90], train[90:180])
			wantNext(t, b, want...)
			if s := c.Stats(); s.SentJoined != 5 || s.Sent != 11 {
				t.Errorf("smaller, and for another: %+v", s)
			}
			if n := strings.Count(log.String(), "fast path lost"); n != 1 {
				t.Errorf("logged %d times: %s", n, &log)
			}
		})
	}
}

// TestTrainDeviceCannot: EIO is the device's answer to a train of any size.
func TestTrainDeviceCannot(t *testing.T) {
	t.Parallel()
	c := listen(t, loopback4, Config{Faults: plan(t, "send#1x2=EIO")})
	needGSO(t, c)
	peer := listen(t, loopback4, Config{})
	for range 3 {
		sendTrain(t, c, peer, "aabbc", 2)
		sendTrain(t, c, peer, "abc", 1)
		wantNext(t, peer, "aa", "bb", "c", "a", "b", "c")
	}
	if s := c.Stats(); s.Sent != 18 || s.SentJoined != 0 || s.SendErrors != (SendErrors{Offload: 2}) {
		t.Errorf("%+v", s)
	}
}

// TestTrainLost: a train that passes in no way is lost, every datagram of it, and GSO is not to blame.
func TestTrainLost(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]SendErrors{
		"send#1x2=EPERM":  {Lost: 3},
		"send#1x10=EIO":   {Offload: 2, Lost: 3},
		"send#1x3=EACCES": {Stale: 2, Caller: 3},
	} {
		c := listen(t, loopback4, Config{Faults: plan(t, text)})
		needGSO(t, c)
		peer := listen(t, loopback4, Config{})
		sendTrain(t, c, peer, "aabbc", 2)
		if s := c.Stats(); s.SendErrors != want || s.SendLost != 3 || s.Sent != 0 || !s.Paths.GSO {
			t.Errorf("%s: %+v", text, s)
		}
	}
}

// TestTrafficClassRefused: a datagram whose traffic class is refused goes out without it.
func TestTrafficClassRefused(t *testing.T) {
	t.Parallel()
	for _, errno := range []string{"EINVAL", "EIO"} {
		c, peer := listen(t, loopback4, Config{Faults: plan(t, "send#1x2="+errno)}), listen(t, loopback4, Config{})
		setOption(t, peer, unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
		for _, want := range []byte{0, 2} { // the second time it is not refused
			n, oobn, err := c.WriteMsgUDP([]byte("x"), tos(2), peer.LocalAddr().(*net.UDPAddr))
			if n != 1 || oobn != len(tos(2)) || err != nil {
				t.Errorf("%d, %d, %v", n, oobn, err)
			}
			oob := make([]byte, 100)
			_, n, _, _, err = peer.ReadMsgUDP(make([]byte, 10), oob)
			must(t, err)
			if got := classOf(t, oob[:n]); got != want {
				t.Errorf("%s: traffic class %d, want %d", errno, got, want)
			}
		}
		if s := c.Stats(); s.SendErrors != (SendErrors{Offload: 2}) || s.Sent != 2 || s.SendLost != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// TestReadErrors: "A read fails only when the deadline has passed or the Conn is closed. Errors that the kernel has for
// the socket … are counted in Stats and passed over."
func TestReadErrors(t *testing.T) {
	t.Parallel()
	for _, errno := range []string{
		"ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EACCES", "EPROTO", "EMSGSIZE", "ENOMEM", "ENOBUFS", "EPERM", "ENOSYS",
		"EINVAL", "EIO", "ECONNRESET",
	} {
		c, peer := listen(t, loopback4, Config{Faults: plan(t, "recv#1x3="+errno)}), listen(t, loopback4, Config{})
		send(t, peer, "x", addrOf(c))
		wantNext(t, c, "x")
		if s := c.Stats(); s.ReceiveErrors != 3 || s.ReceiveCalls != 4 || s.ReceiveBatches != 1 || s.Received != 1 {
			t.Errorf("%s: %+v", errno, s)
		}
	}
}

// TestReadDead: the error of a descriptor that is no socket any more matches net.ErrClosed, and names the call.
func TestReadDead(t *testing.T) {
	t.Parallel()
	for text, errno := range map[string]syscall.Errno{"recv=EBADF": syscall.EBADF, "recv=ENOTSOCK": syscall.ENOTSOCK} {
		c := listen(t, loopback4, Config{Faults: plan(t, text)})
		for range 2 {
			_, _, err := c.ReadFrom(make([]byte, 1))
			var call *os.SyscallError
			if !errors.Is(err, net.ErrClosed) || !errors.Is(err, errno) || !errors.As(err, &call) || call.Syscall != "recvmmsg" {
				t.Errorf("%s: %v", text, err)
			}
			n, err := c.ReadBatch(messages(1, 1), 0)
			if n != 0 || !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: ReadBatch %d, %v", text, n, err)
			}
		}
		must(t, c.Close())
	}
}

// TestRefusedPeer: the ICMP errors of a closed port reach neither reads nor writes, and what is sent once the peer is back
// arrives.
func TestRefusedPeer(t *testing.T) {
	t.Parallel()
	gone := stdListen(t, "udp", loopback4)
	at := gone.LocalAddr().(*net.UDPAddr)
	_ = gone.Close()
	c := dial(t, at, Config{})
	for range 5 {
		if _, err := c.Write([]byte("lost")); err != nil {
			t.Fatal(err)
		}
	}
	wantSilence(t, c)
	if s := c.Stats(); s.ReceiveErrors+s.SendErrors.Stale == 0 || s.Sent != 5 || s.SendLost != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := c.Write([]byte("lost")); err != nil { // its error is pending when the peer is back
		t.Fatal(err)
	}
	back, err := net.ListenUDP("udp", at)
	if err != nil {
		t.Skip("another has the port now: ", err)
	}
	defer back.Close()
	if _, err := c.Write([]byte("here")); err != nil {
		t.Fatal(err)
	}
	wantNext(t, back, "here")
	if s := c.Stats(); s.Sent != 7 || s.SendLost != 0 {
		t.Errorf("%+v", s)
	}
}

// TestRawControlErrors: a datagram with control messages that nobody here knows is not tried again, and counted.
func TestRawControlErrors(t *testing.T) {
	t.Parallel()
	oob := cmsg(unix.IPPROTO_IP, unix.IP_TTL, 9, 0, 0, 0)
	for text, want := range map[string]SendErrors{
		"send=EPERM": {Lost: 1}, "send=ECONNREFUSED": {Lost: 1}, "send=EINVAL": {Caller: 1}, "send=EMSGSIZE": {Size: 1}, "send=EBADF": {Dead: 1},
	} {
		c := listen(t, loopback4, Config{Faults: plan(t, text)})
		_, _, err := c.WriteMsgUDP([]byte("x"), oob, c.LocalAddr().(*net.UDPAddr))
		if (err != nil) != (want.Size+want.Dead > 0) {
			t.Errorf("%s: %v", text, err)
		}
		if s := c.Stats(); s.SendErrors != want || s.SendCalls != 1 || s.SendLost != 1-want.Dead {
			t.Errorf("%s: %+v", text, s)
		}
	}
}

// TestOpenFaults: what fails while a Conn is made is named, and nothing is left.
func TestOpenFaults(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]string{
		"setsockopt#1=EPERM": "ReuseAddr", "setsockopt#2=ENOMEM": "Broadcast", "setsockopt#3=EINVAL": "TTL", "setsockopt#4=ENOBUFS": "set",
	} {
		c, err := Listen(t.Context(), "udp", loopback4, Config{
			ReuseAddr: true, Broadcast: true, TTL: 9, RecvBufferBytes: 10_000, Faults: plan(t, text),
		})
		if c != nil || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", text, c, err)
		}
	}
	// What can be done without is.
	for _, text := range []string{"setsockopt=ENOPROTOOPT", "describe=EBADF", "meminfo=EINVAL", "getsockopt=EBADF"} {
		c, peer := listen(t, loopback4, Config{Faults: plan(t, text)}), listen(t, loopback4, Config{})
		if s := c.Stats(); text == "setsockopt=ENOPROTOOPT" && s.Paths.GRO || text == "getsockopt=EBADF" && s.Paths.GSO {
			t.Errorf("%s: %+v", text, s.Paths)
		}
		send(t, c, "there", addrOf(peer))
		send(t, peer, "back", addrOf(c))
		wantNext(t, peer, "there")
		wantNext(t, c, "back")
	}
}

// syncBuffer is a log that many may write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
