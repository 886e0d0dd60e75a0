package weir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// file is an open one with n bytes that do not repeat soon.
func file(t *testing.T, n int) (f *os.File, content []byte) {
	t.Helper()
	content = make([]byte, n)
	for i := range content {
		content[i] = byte(i ^ i>>8 ^ i>>16)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, content
}

// sendRig is a rig with a connection to send files on, over TCP or a unix socket.
type sendRig struct {
	*fileRig
	c *Conn
}

func onEachSend(t *testing.T, faults string, server, client ConnHandler, test func(t *testing.T, r *sendRig)) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			onEachRig(t, faults, func(t *testing.T, r *fileRig) {
				s := &sendRig{fileRig: r}
				if network == "unix" {
					s.c = r.pair(ConnConfig{}, server, ConnConfig{}, client)
				} else {
					s.c = dialTo(t, r.l, serve(t, r.l, ListenerConfig{}, server), ConnConfig{}, client)
				}
				test(t, s)
			})
		})
	}
}

// TestSendFile has files between other bytes, whatever the calls take of them.
func TestSendFile(t *testing.T) {
	for _, row := range []struct {
		size, offset, n int
		slow            bool
		faults          string
	}{
		{100, 0, 100, false, ""},
		{100, 10, 80, false, ""},
		{300_000, 1, 299_998, false, ""},
		{5 << 20, 7, 4 << 20, true, ""},
		{300_000, 5, 200_000, false, "sendfile*=EINVAL"},
		{300_000, 5, 200_000, true, "sendfile*=ENOSYS"},
		{300_000, 5, 200_000, false, "sendfile*=EOPNOTSUPP; write*=short:5000"},
		{1 << 20, 5, 1<<20 - 5, false, "sendfile#2*=EINVAL"},
		{300_000, 5, 200_000, false, "sendfile*=short:3000"},
		{300_000, 5, 200_000, false, "sendfile%0.5=EAGAIN; write%0.3=EAGAIN"},
		{1 << 20, 0, 1 << 20, false, "sendfile%0.3=ENOBUFS; sendfile%0.3=short:50000"},
	} {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			f, content := file(t, row.size)
			var got []byte
			var l *Loop
			done := 0
			want := append([]byte("before"), content[row.offset:row.offset+row.n]...)
			want = append(append(want, "between"...), content[:10]...)
			want = append(want, "after"...)
			server := ConnHandler{
				OnData: func(c *Conn, b []byte) {
					got = append(got, b...)
					if row.slow {
						c.Pause()
						l.AfterFunc(100*time.Microsecond, c.Resume)
					}
				},
				OnEnd: func(c *Conn) { _ = c.Close(); _ = l.Close() },
			}
			onEachSend(t, row.faults, server, ConnHandler{}, func(t *testing.T, r *sendRig) {
				l, got, done = r.l, nil, 0
				told := func(err error) {
					if done++; err != nil {
						t.Errorf("done hears %v", err)
					}
				}
				_, _ = r.c.Write([]byte("before"))
				if err := r.c.SendFile(f, int64(row.offset), int64(row.n), told); err != nil {
					t.Fatal(err)
				}
				_, _ = r.c.Write([]byte("between"))
				for _, n := range []int64{0, 10} {
					if err := r.c.SendFile(f, 0, n, told); err != nil {
						t.Fatal(err)
					}
				}
				_, _ = r.c.Write([]byte("after"))
				_ = r.c.CloseWrite()
				run(t, l)
				if !bytes.Equal(got, want) {
					t.Errorf("%d bytes came, want %d", len(got), len(want))
				}
				if done != 3 {
					t.Errorf("done was called %d times", done)
				}
			})
		})
	}
}

// TestSendFileBad: a file that ends too soon, or cannot be read, resets the connection; done and OnClose hear why.
func TestSendFileBad(t *testing.T) {
	short, _ := file(t, 1000)
	long, _ := file(t, 600_000)
	closed, _ := file(t, 10)
	_ = closed.Close()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer w.Close()
	_, _ = w.Write([]byte("hello"))
	for _, row := range []struct {
		name   string
		f      *os.File
		n      int64
		want   error
		faults string
	}{
		{"short", short, 1001, io.ErrUnexpectedEOF, ""},
		{"short, copied", short, 1001, io.ErrUnexpectedEOF, "sendfile*=EINVAL"},
		{"long", long, 1 << 20, io.ErrUnexpectedEOF, ""},
		{"closed", closed, 10, fs.ErrClosed, ""},
		{"directory", dir, 10, syscall.EISDIR, ""},
		{"pipe", pipe, 5, syscall.ESPIPE, ""},
		{"disk", short, 10, nil, "sendfile*=EIO"}, // which reading it does not find
	} {
		t.Run(row.name, func(t *testing.T) {
			var l *Loop
			var heard, over []error
			server := ConnHandler{
				OnClose: func(c *Conn, err error) {
					if c.network() == "tcp" && row.want != nil && !errors.Is(err, syscall.ECONNRESET) {
						t.Errorf("the peer hears %v", err)
					}
					_ = l.Close()
				},
			}
			client := ConnHandler{OnClose: func(_ *Conn, err error) { over = append(over, err) }}
			onEachSend(t, row.faults, server, client, func(t *testing.T, r *sendRig) {
				l, heard, over = r.l, nil, nil
				if err := r.c.SendFile(row.f, 0, row.n, func(err error) { heard = append(heard, err) }); err != nil {
					t.Fatal(err)
				}
				if row.want == nil {
					_ = r.c.CloseWrite()
				}
				run(t, l)
				var op *OpError
				switch {
				case len(heard) != 1 || !errors.Is(heard[0], row.want):
					t.Errorf("done heard %v, want %v", heard, row.want)
				case row.want == nil: // the loop has ended with its server
				case len(over) != 1 || !errors.Is(over[0], row.want) || !errors.As(over[0], &op):
					t.Errorf("OnClose heard %v, want %v", over, row.want)
				}
			})
		})
	}
}

// TestSendFileProc sends a file that has no size, and that sendfile(2) cannot send on some kernels.
func TestSendFileProc(t *testing.T) {
	const path = "/proc/version"
	content, err := os.ReadFile(path)
	if err != nil {
		t.Skip(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	var l *Loop
	var got []byte
	server := ConnHandler{
		OnData: func(_ *Conn, b []byte) { got = append(got, b...) },
		OnEnd:  func(*Conn) { _ = l.Close() },
	}
	onEachSend(t, "", server, ConnHandler{}, func(t *testing.T, r *sendRig) {
		l, got = r.l, nil
		if err := r.c.SendFile(f, 0, int64(len(content)), func(err error) {
			if err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		_ = r.c.CloseWrite()
		run(t, l)
		if !bytes.Equal(got, content) {
			t.Errorf("%q came, want %q", got, content)
		}
	})
}

// TestSendFileEnds: done is called once, whatever ends the connection.
func TestSendFileEnds(t *testing.T) {
	f, _ := file(t, 4<<20)
	for _, row := range []struct {
		name string
		end  func(r *sendRig, server *Conn)
		want error
	}{
		{"Reset", func(r *sendRig, _ *Conn) { _ = r.c.Reset() }, ErrClosed},
		{"the loop ends", func(r *sendRig, _ *Conn) { _ = r.l.Close() }, ErrClosed},
		{"the peer resets", func(_ *sendRig, server *Conn) { _ = server.Reset() }, ErrClosed},
		{"Close", func(r *sendRig, server *Conn) { _ = r.c.Close(); server.Resume() }, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var server *Conn
			var heard []error
			onEachSend(t, "", ConnHandler{OnOpen: func(c *Conn) { server = c; c.Pause() }}, ConnHandler{},
				func(t *testing.T, r *sendRig) {
					heard = nil
					for range 3 {
						if err := r.c.SendFile(f, 0, 4<<20, func(err error) { heard = append(heard, err) }); err != nil {
							t.Fatal(err)
						}
					}
					r.l.Every(time.Millisecond, func() {
						if len(heard) == 3 {
							_ = r.l.Close()
						}
					})
					r.soon(func() { row.end(r, server) })
					run(t, r.l)
					if len(heard) != 3 {
						t.Fatalf("done was called %d times of 3", len(heard))
					}
					for _, err := range heard {
						if err != row.want {
							t.Errorf("done hears %v, want %v", err, row.want)
						}
					}
				})
		})
	}
}

// TestSendFileLimit: "ErrWouldBlock when 64 files wait", and then OnDrain, once.
func TestSendFileLimit(t *testing.T) {
	f, _ := file(t, 100)
	var server *Conn
	drained, done, waiting := 0, 0, 0
	onEachSend(t, "sendfile#1x3=EAGAIN", ConnHandler{OnOpen: func(c *Conn) { server = c }},
		ConnHandler{OnDrain: func(c *Conn) { drained++; waiting = c.out.Items() }}, func(t *testing.T, r *sendRig) {
			drained, done = 0, 0
			told := func(error) { done++ }
			for range 64 {
				if err := r.c.SendFile(f, 0, 100, told); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.c.SendFile(f, 0, 100, told); err != ErrWouldBlock {
				t.Errorf("the 65th: %v", err)
			}
			r.soon(func() { _ = r.l.Close() })
			run(t, r.l)
			if drained != 1 || waiting > maxItems/2 || done != 64 || server.Stats().Read != 6400 || r.l.Stats().Streams.Refused != 1 {
				t.Errorf("OnDrain %d times, with %d waiting, done %d times, %d bytes", drained, waiting, done, server.Stats().Read)
			}
		})
}

// TestSendFileErrors: none calls done.
func TestSendFileErrors(t *testing.T) {
	f, _ := file(t, 10)
	onEachSend(t, "", ConnHandler{}, ConnHandler{}, func(t *testing.T, r *sendRig) {
		told := func(error) { t.Error("done is called") }
		for _, row := range []struct {
			what string
			err  error
		}{
			{"a negative offset", r.c.SendFile(f, -1, 1, told)},
			{"a negative n", r.c.SendFile(f, 0, -1, told)},
			{"no file", r.c.SendFile(nil, 0, 1, told)},
			{"no done", r.c.SendFile(f, 0, 1, nil)},
		} {
			if !errors.Is(row.err, syscall.EINVAL) {
				t.Errorf("%s: %v", row.what, row.err)
			}
		}
		_ = r.c.CloseWrite()
		if err := r.c.SendFile(f, 0, 1, told); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("after CloseWrite: %v", err)
		}
		_ = r.c.Reset()
		if err := r.c.SendFile(f, 0, 1, told); err != ErrClosed {
			t.Errorf("after Reset: %v", err)
		}
		_ = r.l.Close()
	})
}

// TestSendFileDone: a panic in done, or a Close, costs neither the others theirs nor OnClose.
func TestSendFileDone(t *testing.T) {
	f, _ := file(t, 10)
	for _, panics := range []bool{false, true} {
		closed, done := 0, 0
		client := ConnHandler{OnClose: func(*Conn, error) { closed++ }}
		onEachSend(t, "", ConnHandler{}, client, func(t *testing.T, r *sendRig) {
			closed, done = 0, 0
			for range 3 {
				if err := r.c.SendFile(f, 0, 10, func(error) {
					if done++; done > 1 {
						return
					}
					_ = r.c.Close()
					if panics {
						panic("done")
					}
					r.soon(func() { _ = r.l.Close() })
				}); err != nil {
					t.Fatal(err)
				}
			}
			func() {
				defer func() {
					if p := recover(); (p != nil) != panics {
						t.Errorf("recovered %v", p)
					}
				}()
				run(t, r.l)
			}()
			if done != 3 || closed != 1 {
				t.Errorf("done %d times, OnClose %d times", done, closed)
			}
		})
	}
}

// TestSendFileLog: that files are copied is logged once a loop.
func TestSendFileLog(t *testing.T) {
	var log bytes.Buffer
	l := newLoop(t, Config{
		Kernel: NewKernel(memsys.New().Backend()), Faults: plan(t, "sendfile*=ENOSYS"), Logger: logTo(&log), SlowCallback: -1,
	})
	f, content := file(t, 1000)
	got := 0
	ln := serve(t, l, ListenerConfig{}, ConnHandler{
		OnData: func(_ *Conn, b []byte) { got += len(b) },
		OnEnd:  func(*Conn) { l.AfterFunc(time.Millisecond, func() { _ = l.Close() }) },
	})
	c := dialTo(t, l, ln, ConnConfig{}, ConnHandler{})
	for range 2 {
		if err := c.SendFile(f, 0, 1000, func(error) {}); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.CloseWrite()
	run(t, l)
	if got != 2*len(content) || strings.Count(log.String(), "path=sendfile") != 1 {
		t.Errorf("%d bytes came, and the log is:\n%s", got, log.String())
	}
}
