//go:build linux

package sys

import (
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// tcpPair is two connected TCP sockets on the loopback.
func tcpPair(t *testing.T, k Kernel) (client, server int) {
	t.Helper()
	l := socketOf(t, k, IPv4, TCP)
	if err := k.Bind(l, netip.MustParseAddrPort("127.0.0.1:0")); err != nil {
		t.Fatal(err)
	}
	if err := k.Listen(l, 1); err != nil {
		t.Fatal(err)
	}
	at, err := k.LocalAddr(l)
	if err != nil {
		t.Fatal(err)
	}
	client = socketOf(t, k, IPv4, TCP)
	if err := k.Connect(client, at); err != nil && err != unix.EINPROGRESS {
		t.Fatal(err)
	}
	await(t, l, unix.POLLIN)
	server, peer, err := k.Accept(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close(server) })
	await(t, client, unix.POLLOUT)
	if own, err := k.LocalAddr(client); peer != own || err != nil {
		t.Errorf("the peer is %v, want %v, %v", peer, own, err)
	}
	return client, server
}

func await(t *testing.T, fd int, events int16) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, 30_000)
		if err == unix.EINTR {
			continue
		}
		if n != 1 || err != nil {
			t.Fatalf("%d is not ready: %v", fd, err)
		}
		return
	}
}

// TestSocketKinds: "EPROTONOSUPPORT for a kind that the family has not", and what there is, is what it says.
func TestSocketKinds(t *testing.T) {
	t.Parallel()
	k := New()
	for f := range UnixFamily + 2 {
		for kind := range Unixgram + 2 {
			var want error
			switch ip := f == IPv4 || f == IPv6; {
			case !ip && f != UnixFamily:
				want = unix.EAFNOSUPPORT
			case !(ip && (kind == UDP || kind == TCP)) && !(!ip && (kind == UnixStream || kind == Unixgram)):
				want = unix.EPROTONOSUPPORT
			}
			fd, err := k.Socket(f, kind)
			if err != want || (err != nil) != (fd == -1) {
				t.Errorf("family %d, kind %d: %d, %v; want %v", f, kind, fd, err, want)
			}
			if err != nil {
				continue
			}
			if d, err := k.Describe(fd); d.Family != f || d.Kind != kind || d.Listening || err != nil {
				t.Errorf("family %d, kind %d: is %+v, %v", f, kind, d, err)
			}
			wantFlags(t, fd)
			if err := k.Close(fd); err != nil {
				t.Error(err)
			}
		}
	}
}

func wantFlags(t *testing.T, fd int) {
	t.Helper()
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 || err != nil {
		t.Errorf("%d stays open in programs that are started: %v", fd, err)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); flags&unix.O_NONBLOCK == 0 || err != nil {
		t.Errorf("%d blocks: %v", fd, err)
	}
}

// TestAcceptedFlags: "takes a connection out of a listener's queue, non-blocking and close-on-exec".
func TestAcceptedFlags(t *testing.T) {
	t.Parallel()
	_, server := tcpPair(t, New())
	wantFlags(t, server)
}

// TestStreamsDoNotWait has sockets that others made blocking.
func TestStreamsDoNotWait(t *testing.T) {
	t.Parallel()
	k := New()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, fds[:])
	one, two := vectorOf(string(make([]byte, 1<<16))), vectorOf(string(make([]byte, 1<<16)), "x")
	buf := make([]byte, 8)
	if n, err := k.Read(fds[0], buf); n != 0 || err != unix.EAGAIN {
		t.Errorf("reads %d, %v", n, err)
	}
	if n, err := k.ReadFiles(fds[0], buf, NewFiles(1)); n != 0 || err != unix.EAGAIN {
		t.Errorf("reads %d, %v", n, err)
	}
	for err == nil {
		_, err = k.Write(fds[0], one, false)
	}
	if err != unix.EAGAIN {
		t.Errorf("one buffer: %v", err)
	}
	if _, err := k.Write(fds[0], two, false); err != unix.EAGAIN {
		t.Errorf("two buffers: %v", err)
	}
	if _, err := k.WriteFiles(fds[0], one, []int{0}); err != unix.EAGAIN {
		t.Errorf("with a descriptor: %v", err)
	}
	if err := k.Unblock(fds[0]); err != nil {
		t.Fatal(err)
	}
	wantFlags(t, fds[0])
}

// TestNoSignal: "It raises no SIGPIPE." A signal that is sent behind tells that none came before.
func TestNoSignal(t *testing.T) {
	k := New()
	a, b := pair(t)
	if err := k.CloseWrite(a); err != nil {
		t.Fatal(err)
	}
	if n, err := k.Read(b, make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("the end of the stream is %d, %v", n, err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGPIPE, unix.SIGWINCH)
	defer signal.Stop(signals)
	for name, write := range map[string]func() (int, error){
		"one buffer":  func() (int, error) { return k.Write(a, vectorOf("x"), false) },
		"two buffers": func() (int, error) { return k.Write(a, vectorOf("x", "y"), false) },
		"files":       func() (int, error) { return k.WriteFiles(a, vectorOf("x"), []int{a}) },
	} {
		if n, err := write(); n != 0 || err != unix.EPIPE {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	if got := <-signals; got != unix.SIGWINCH {
		t.Errorf("a write raises %v", got)
	}
}

// TestDescribeListening has a socket of each kind that listens, and one that is connected to it.
func TestDescribeListening(t *testing.T) {
	t.Parallel()
	k := New()
	name := "@weir/" + t.TempDir()
	l, conn := socketOf(t, k, UnixFamily, UnixStream), socketOf(t, k, UnixFamily, UnixStream)
	if err := k.BindUnix(l, name); err != nil {
		t.Fatal(err)
	}
	tcp := socketOf(t, k, IPv6, TCP)
	for _, fd := range []int{l, tcp} {
		if err := k.Listen(fd, 1); err != nil {
			t.Fatal(err)
		}
		if d, err := k.Describe(fd); !d.Listening || err != nil {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if err := k.ConnectUnix(conn, name); err != nil {
		t.Fatal(err)
	}
	if d, err := k.Describe(conn); d.Listening || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if fd, peer, err := k.Accept(l); peer.IsValid() || err != nil {
		t.Errorf("accepts from %v, %v", peer, err)
	} else if err := k.Close(fd); err != nil {
		t.Error(err)
	}
	for _, ask := range []func(int) (netip.AddrPort, error){k.LocalAddr, k.RemoteAddr} {
		if at, err := ask(conn); at.IsValid() || err != nil {
			t.Errorf("a unix socket is at %v, %v", at, err)
		}
	}
}

// TestStreamAllocations holds that what a loop does all the time makes no garbage.
func TestStreamAllocations(t *testing.T) {
	k := New()
	a, b := pair(t)
	gram := socketOf(t, k, UnixFamily, Unixgram)
	name := "@weir/" + t.TempDir()
	if err := k.BindUnix(gram, name); err != nil {
		t.Fatal(err)
	}
	from := socketOf(t, k, UnixFamily, Unixgram)
	one, two, f, buf := vectorOf("x"), vectorOf("x", "y"), NewFiles(2), make([]byte, 8)
	files := []int{0}
	for call, do := range map[string]func(){
		"one buffer":  func() { _, _ = k.Write(a, one, true) },
		"two buffers": func() { _, _ = k.Write(a, two, false) },
		"read":        func() { _, _ = k.Read(b, buf) },
		"files": func() {
			_, _ = k.WriteFiles(a, two, files)
			_, _ = k.ReadFiles(b, buf, f)
			for _, fd := range f.FDs {
				_ = k.Close(fd)
			}
		},
		"datagram": func() {
			_ = k.SendUnix(from, buf, name)
			_, _, _, _ = k.RecvUnix(gram, buf)
		},
		"info": func() { _, _ = k.Info(a) },
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s: %v allocations", call, n)
		}
	}
}

// TestWriteKeepsNothing: a Vector that waits for its next use keeps no buffer alive.
func TestWriteKeepsNothing(t *testing.T) {
	t.Parallel()
	a, _ := pair(t)
	v := vectorOf("x", "y")
	if n, err := New().Write(a, v, false); n != 2 || err != nil {
		t.Errorf("writes %d, %v", n, err)
	}
	for _, iov := range v.native.iovs {
		if iov != (unix.Iovec{}) {
			t.Error("a buffer is kept")
		}
	}
}

// TestSendFile: "f's own offset stays as it is"; "sent == 0 without an error: the file ends at offset".
func TestSendFile(t *testing.T) {
	t.Parallel()
	k := New()
	client, server := tcpPair(t, k)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	buf := make([]byte, 64)
	for _, c := range []struct {
		offset int64
		n      int
		want   string
	}{{0, 3, "012"}, {7, 100, "789"}, {10, 1, ""}, {11, 1, ""}} {
		n, err := k.SendFile(client, file, c.offset, c.n, false)
		if n != len(c.want) || err != nil {
			t.Errorf("%+v: %d, %v", c, n, err)
		}
		if n == 0 {
			continue
		}
		await(t, server, unix.POLLIN)
		if n, err := k.Read(server, buf); string(buf[:n]) != c.want || err != nil {
			t.Errorf("%+v: reads %q, %v", c, buf[:n], err)
		}
	}
	if at, err := file.Seek(0, io.SeekCurrent); at != 0 || err != nil {
		t.Errorf("the file is at %d, %v", at, err)
	}
	if n, err := k.SendFile(client, file, 0, 1, false); n != 1 || err != nil {
		t.Errorf("sends %d, %v", n, err)
	}
	_ = file.Close()
	if n, err := k.SendFile(client, file, 0, 1, false); n != 0 || err != unix.EBADF { // nothing of the call before
		t.Errorf("a file that was closed: %d, %v", n, err)
	}
}

func TestSendFileErrors(t *testing.T) {
	t.Parallel()
	k := New()
	client, server := tcpPair(t, k)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	closed, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for _, c := range []struct {
		name   string
		file   *os.File
		offset int64
		want   error
	}{
		{"a pipe", read, 0, unix.ESPIPE},
		{"a directory", dir, 0, unix.EINVAL},
		{"before the file", dir, -1, unix.EINVAL},
		{"a file that was closed", closed, 0, unix.EBADF},
		{"no file", nil, 0, unix.EBADF},
	} {
		if n, err := k.SendFile(client, c.file, c.offset, 1, true); n != 0 || err != c.want {
			t.Errorf("%s: %d, %v; want %v", c.name, n, err, c.want)
		}
	}
	if n, err := k.Read(server, make([]byte, 1)); n != 0 || err != unix.EAGAIN {
		t.Errorf("reads %d, %v", n, err)
	}
}
