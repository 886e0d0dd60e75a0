//go:build linux

package weir

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sharerEnv asks the test program to be the other process that has a socket.
const sharerEnv = "WEIR_TEST_SHARER"

// sharer is a process that takes a socket over. It is told what to do by a unix socket, its descriptor 3, and has the
// socket as descriptor 4 where it inherited it.
type sharer struct {
	t    *testing.T
	cmd  *exec.Cmd
	conn *net.UnixConn
	in   *bufio.Reader
}

func startSharer(t *testing.T, inherited int) *sharer {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	s := &sharer{t: t, conn: unixConn(t, pair[0]), cmd: exec.Command(os.Args[0])}
	s.in = bufio.NewReader(s.conn)
	s.cmd.Env = append(os.Environ(), sharerEnv+"=1")
	s.cmd.Stderr = os.Stderr
	s.cmd.ExtraFiles = []*os.File{theirs}
	if inherited >= 0 {
		f := os.NewFile(uintptr(inherited), "udp")
		defer f.Close()
		s.cmd.ExtraFiles = append(s.cmd.ExtraFiles, f)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

func unixConn(t *testing.T, fd int) *net.UnixConn {
	t.Helper()
	f := os.NewFile(uintptr(fd), "control")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*net.UnixConn)
}

// end waits for the process, which ends with the conversation.
func (s *sharer) end() {
	_ = s.conn.Close()
	if err := s.cmd.Wait(); err != nil {
		s.t.Error("the other process: ", err)
	}
}

// tell says a line and, with a descriptor from 0, passes that, which it closes.
func (s *sharer) tell(fd int, format string, args ...any) {
	s.t.Helper()
	var rights []byte
	if fd >= 0 {
		rights = syscall.UnixRights(fd)
		defer syscall.Close(fd)
	}
	if _, _, err := s.conn.WriteMsgUnix(fmt.Appendf(nil, format+"\n", args...), rights, nil); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sharer) hear() string {
	s.t.Helper()
	line, err := s.in.ReadString('\n')
	if err != nil && err != io.EOF {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// runSharer is the process that startSharer starts. A line of its input is what to do with the socket: "take" it from
// the message, "inherit" it, "inject" a datagram; then "stop" or "exit" in the first datagram, or "count" all, each of
// which it answers when done.
func runSharer(string) error {
	f := os.NewFile(3, "control")
	c, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		return err
	}
	defer c.Close()
	conn := c.(*net.UnixConn)
	l, err := New(Config{})
	if err != nil {
		return err
	}
	defer l.Close()
	fd := 4
	var u *UDP
	var got []byte
	onDatagram := func(*UDP, *Datagram) {}
	adopt := func(fd int) error {
		var err error
		u, err = l.AdoptUDP(fd, UDPConfig{}, UDPHandler{OnDatagram: func(u *UDP, d *Datagram) {
			got = append(got, d.Payload...)
			onDatagram(u, d)
		}})
		return err
	}
	var pending []byte
	for {
		for !bytes.Contains(pending, []byte("\n")) {
			buf, oob := make([]byte, 4096), make([]byte, 64)
			n, oobn, _, _, err := conn.ReadMsgUnix(buf, oob)
			if n == 0 || err != nil {
				return nil
			}
			pending = append(pending, buf[:n]...)
			if oobn > 0 {
				msgs, err := syscall.ParseSocketControlMessage(oob[:oobn])
				if err != nil {
					return err
				}
				fds, err := syscall.ParseUnixRights(&msgs[0])
				if err != nil {
					return err
				}
				fd = fds[0]
			}
		}
		line, rest, _ := bytes.Cut(pending, []byte("\n"))
		pending = rest
		word, arg, _ := strings.Cut(string(line), " ")
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		switch word {
		case "take", "inherit":
			err = adopt(fd)
			_ = syscall.Close(fd)
		case "inject":
			var payload []byte
			if payload, err = hex.DecodeString(arg); err == nil {
				err = u.Inject(&Datagram{Payload: payload, Source: addrPort("127.0.0.1:1")}) // weir:port never sent to
			}
		case "stop":
			onDatagram = func(u *UDP, d *Datagram) {
				_ = u.Close()
				_ = l.Close()
			}
			err = l.Run(ctx)
			fmt.Fprintf(conn, "%x\n", got)
		case "exit":
			onDatagram = func(u *UDP, d *Datagram) {
				fmt.Fprintf(conn, "%x\n", got)
				os.Exit(0)
			}
			err = l.Run(ctx)
		case "count":
			idle := l.AfterFunc(300*time.Millisecond, func() { _ = l.Close() })
			onDatagram = func(*UDP, *Datagram) { idle.Reset(300 * time.Millisecond) }
			err = l.Run(ctx)
			fmt.Fprintf(conn, "%x\n", got)
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		cancel()
		if err != nil {
			return err
		}
	}
}

// sharedSocket is this process's part: a socket with 32 datagrams queued, of which it sees some.
type sharedSocket struct {
	t    *testing.T
	loop *Loop
	u    *UDP
	got  []byte
	on   func(u *UDP)
}

const sharedCount = 32

func newSharedSocket(t *testing.T) *sharedSocket {
	t.Helper()
	s := &sharedSocket{t: t, loop: newLoop(t, Config{Bound: Unbounded()}), on: func(*UDP) {}}
	s.u = mustListen(t, s.loop, loopback4, UDPConfig{NoGRO: true}, UDPHandler{OnDatagram: func(u *UDP, d *Datagram) {
		s.got = append(s.got, d.Payload...)
		s.on(u)
	}})
	return s
}

// fill queues 32 datagrams, each with its number.
func (s *sharedSocket) fill() {
	s.t.Helper()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(s.u.LocalAddr()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	for i := range sharedCount {
		if _, err := c.Write([]byte{byte(i)}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *sharedSocket) export() (int, []Datagram) {
	s.t.Helper()
	fd, ahead, err := s.u.Export()
	if err != nil {
		s.t.Fatal(err)
	}
	return fd, ahead
}

// count receives what is there.
func (s *sharedSocket) count() {
	later(s.loop, func() { _ = s.loop.Close() })
	run(s.t, s.loop)
}

// stop receives until the first datagram, and closes in that.
func (s *sharedSocket) stop() {
	s.on = func(u *UDP) {
		_ = u.Close()
		_ = s.loop.Close()
	}
	run(s.t, s.loop)
}

// check sees that one got the first datagram and the other the 31 that follow.
func (s *sharedSocket) check(first, others string) {
	s.t.Helper()
	var want strings.Builder
	for i := 1; i < sharedCount; i++ {
		fmt.Fprintf(&want, "%02x", i)
	}
	if first != "00" || others != want.String() {
		s.t.Errorf("who stops got %s, the other %s", first, others)
	}
}

// TestSharedSocketStops: two processes have a socket with 32 datagrams queued, and one stops in its first. The other
// gets the 31 that are left, whoever stops and however the socket came to be shared.
func TestSharedSocketStops(t *testing.T) {
	for _, row := range []struct{ name, how, word string }{
		{"passed, the receiver closes", "take", "stop"},
		{"passed, the receiver exits", "take", "exit"},
		{"inherited, the child closes", "inherit", "stop"},
		{"inherited, the child exits", "inherit", "exit"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSharedSocket(t)
			fd, _ := s.export()
			inherited := -1
			if row.how == "inherit" {
				inherited, fd = fd, -1
			}
			other := startSharer(t, inherited)
			other.tell(fd, row.how)
			s.fill()
			other.tell(-1, row.word)
			first := other.hear()
			s.count()
			s.check(first, hex.EncodeToString(s.got))
		})
	}
	t.Run("passed, the sender closes", func(t *testing.T) {
		s := newSharedSocket(t)
		fd, _ := s.export()
		other := startSharer(t, -1)
		other.tell(fd, "take")
		s.fill()
		s.stop()
		other.tell(-1, "count")
		s.check(hex.EncodeToString(s.got), other.hear())
	})
	t.Run("passed and closed in the first datagram", func(t *testing.T) {
		s := newSharedSocket(t)
		other := startSharer(t, -1)
		s.fill()
		s.on = func(u *UDP) {
			fd, ahead := s.export()
			if len(ahead) != sharedCount-1 {
				t.Errorf("%d datagrams were read ahead, want %d", len(ahead), sharedCount-1)
			}
			other.tell(fd, "take")
			for _, d := range ahead {
				other.tell(-1, "inject %x", d.Payload)
			}
			_ = u.Close()
			_ = s.loop.Close()
		}
		run(t, s.loop)
		if d := s.u.Stats().Discarded; d != 0 {
			t.Errorf("%d discarded", d)
		}
		other.tell(-1, "count")
		s.check(hex.EncodeToString(s.got), other.hear())
	})
}

// TestSharedSocketHandOver echoes to a client that never pauses while the socket goes to another process: no
// datagram is lost.
func TestSharedSocketHandOver(t *testing.T) {
	l := newLoop(t, Config{})
	echo := func(u *UDP, d *Datagram) { _ = u.Send(d.Payload, d.Source) }
	server := mustListen(t, l, loopback4, UDPConfig{NoGRO: true}, UDPHandler{OnDatagram: echo})
	replies := map[string]int{}
	client := mustDial(t, l, netip.AddrPort{}, server.LocalAddr(), UDPConfig{}, UDPHandler{
		OnDatagram: func(_ *UDP, d *Datagram) { replies[string(d.Payload)]++ },
	})
	const count = 200
	sent := 0
	var heir *UDP
	l.Every(time.Millisecond, func() {
		if sent == count {
			later(l, func() { _ = l.Close() })
			sent++
		}
		if sent > count {
			return
		}
		mustSend(t, client, fmt.Sprint(sent), netip.AddrPort{})
		client.flush()
		if sent++; sent == count/2 {
			heir = handOver(t, server, echo)
		}
	})
	run(t, l)
	for i := range count {
		if n := replies[fmt.Sprint(i)]; n != 1 {
			t.Errorf("datagram %d was answered %d times", i, n)
		}
	}
	if s := heir.Stats(); s.Received+s.Injected < count/2 {
		t.Errorf("the heir received %d and was given %d", s.Received, s.Injected)
	}
}

// handOver moves a socket to another one by its descriptor, in the safe order: the old one stops, hands over what it
// read ahead, and goes.
func handOver(t *testing.T, from *UDP, onDatagram func(*UDP, *Datagram)) *UDP {
	t.Helper()
	from.Pause()
	fd, ahead, err := from.Export()
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	to, err := from.loop.AdoptUDP(fd, UDPConfig{Sole: true}, UDPHandler{OnDatagram: onDatagram})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Close(fd); err != nil {
		t.Fatal(err)
	}
	for i := range ahead {
		if err := to.Inject(&ahead[i]); err != nil {
			t.Fatal(err)
		}
	}
	return to
}
