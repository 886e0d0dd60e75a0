package weir

import (
	"bytes"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// fileRig is a loop with a listener at a unix name, and a way to count descriptors.
type fileRig struct {
	t      *testing.T
	l      *Loop
	k      sys.Kernel
	name   string
	opened func() int
	limit  func(more int) // of descriptors; nil on the real kernel
}

func onEachRig(t *testing.T, faults string, test func(t *testing.T, r *fileRig)) {
	t.Run("memory", func(t *testing.T) {
		net := memsys.New()
		r := &fileRig{t: t, name: "/run/socket", limit: func(more int) { leave(t, net, more) }}
		r.opened = func() int {
			defer net.SetMaxDescriptors(0)
			return leave(t, net, 0)
		}
		r.open(NewKernel(net.Backend()), faults)
		test(t, r)
	})
	t.Run("kernel", func(t *testing.T) {
		r := &fileRig{t: t, name: filepath.Join(t.TempDir(), "socket"), opened: openFiles}
		r.open(realKernel(t), faults)
		test(t, r)
	})
}

func (r *fileRig) open(k *Kernel, faults string) {
	r.k = k.backend.Kernel
	r.l = newLoop(r.t, Config{Kernel: k, Faults: plan(r.t, faults)})
}

// pair connects two: what h says is the server's.
func (r *fileRig) pair(cfg ConnConfig, h ConnHandler, clientCfg ConnConfig, client ConnHandler) *Conn {
	r.t.Helper()
	ln, err := r.l.ListenUnix(r.name, ListenerConfig{Conn: cfg}, ListenerHandler{Conn: h})
	if err != nil {
		r.t.Fatal(err)
	}
	return dialTo(r.t, r.l, ln, clientCfg, client)
}

// sockets opens n, which are closed when the test ends.
func (r *fileRig) sockets(n int) (fds []int) {
	r.t.Helper()
	for range n {
		fd, err := r.k.Socket(sys.IPv4, sys.UDP)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = r.k.Close(fd) })
		fds = append(fds, fd)
	}
	return fds
}

// soon calls fn when everything that is on its way has come.
func (r *fileRig) soon(fn func()) { r.l.AfterFunc(20*time.Millisecond, fn) }

// TestFilesAdopted passes a socket and a connection, which then belong to the loop of who has got them.
func TestFilesAdopted(t *testing.T) {
	onEachRig(t, "", func(t *testing.T, r *fileRig) {
		l := r.l
		var got []string
		note := func(what string) {
			if got = append(got, what); len(got) == 2 {
				_ = l.Close()
			}
		}
		given, err := l.ListenUDP(loopback4, UDPConfig{NoGRO: true}, UDPHandler{
			OnDatagram: func(*UDP, *Datagram) { t.Error("who gave it away has it still") },
		})
		if err != nil {
			t.Fatal(err)
		}
		to := given.LocalAddr()
		tcp := serve(t, l, ListenerConfig{}, ConnHandler{OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) }})
		c := r.pair(ConnConfig{MaxFiles: 2}, ConnHandler{OnFiles: func(_ *Conn, f *Files) {
			if f.Len() != 2 || f.Truncated() {
				t.Errorf("%d descriptors, %v", f.Len(), f.Truncated())
			}
			_, err := l.AdoptUDP(f.FD(0), UDPConfig{}, UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) { note("datagram") }})
			if err != nil {
				t.Error(err)
			}
			c, err := l.AdoptConn(f.FD(1), ConnConfig{}, ConnHandler{OnData: func(c *Conn, b []byte) { note("echo") }})
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = c.Write([]byte("hello"))
			sender := listen(t, l, Bound{}, nil)
			_ = sender.Send([]byte("hello"), to)
		}}, ConnConfig{}, ConnHandler{})
		dialTo(t, l, tcp, ConnConfig{}, ConnHandler{OnOpen: func(o *Conn) {
			fd, _, err := given.Export()
			if err != nil {
				t.Fatal(err)
			}
			fd2, err := o.Export()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.WriteFiles([]byte("x"), fd, fd2); err != nil {
				t.Error(err)
			}
			_, _, _, _ = r.k.Close(fd), r.k.Close(fd2), given.Close(), o.Close()
		}})
		run(t, l)
		if len(got) != 2 {
			t.Errorf("%v", got)
		}
		if s := l.Stats().Streams; s.FilesSent != 2 || s.FilesReceived != 2 {
			t.Errorf("%d sent, %d received", s.FilesSent, s.FilesReceived)
		}
	})
}

// TestFilesNotTaken: "What is not taken of f is closed", and so is what is too much.
func TestFilesNotTaken(t *testing.T) {
	for _, row := range []struct {
		name                 string
		sent, max, room, len int // room is another connection's MaxFiles
		truncated            bool
		take                 int
		unheard              bool
	}{
		{name: "all", sent: 3, max: 3, len: 3},
		{name: "less", sent: 1, max: 3, len: 1},
		{name: "one taken", sent: 3, max: 3, len: 3, take: 1},
		{name: "too many", sent: 5, max: 3, len: 3, truncated: true},
		{name: "too many, and room for them", sent: 5, max: 3, room: 10, len: 3, truncated: true},
		{name: "as many as can be", sent: 253, max: 253, len: 253},
		{name: "none wanted", sent: 3, max: 0, len: -1},
		{name: "no handler", sent: 3, max: 3, len: -1, unheard: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachRig(t, "", func(t *testing.T, r *fileRig) {
				l := r.l
				if row.room > 0 {
					l.files = sys.NewFiles(row.room)
				}
				fds := r.sockets(row.sent)
				heard, taken, before := -1, 0, 0
				var got []byte
				h := ConnHandler{
					OnFiles: func(_ *Conn, f *Files) {
						if heard = f.Len(); f.Truncated() != row.truncated {
							t.Errorf("truncated is %v", f.Truncated())
						}
						for i := range row.take {
							fd := f.Take(i)
							if taken++; fd < 0 || f.FD(i) != -1 || f.Take(i) != -1 {
								t.Errorf("descriptor %d is %d, then %d", i, fd, f.FD(i))
							}
							r.t.Cleanup(func() { _ = r.k.Close(fd) })
						}
					},
					OnData: func(_ *Conn, b []byte) { got = append(got, b...) },
				}
				if row.unheard {
					h.OnFiles = nil
				}
				c := r.pair(ConnConfig{MaxFiles: row.max}, h, ConnConfig{}, ConnHandler{})
				r.soon(func() {
					before = r.opened()
					if err := c.WriteFiles([]byte("hello"), fds...); err != nil {
						t.Error(err)
					}
					r.soon(func() {
						if after := r.opened(); after != before+taken {
							t.Errorf("%d are open, %d before, %d taken", after, before, taken)
						}
						_ = l.Close()
					})
				})
				run(t, l)
				if heard != row.len || string(got) != "hello" {
					t.Errorf("OnFiles heard of %d, want %d; the bytes are %q", heard, row.len, got)
				}
			})
		})
	}
}

// TestFilesInOrder sends many messages between other bytes, with the calls cut short in many ways: each descriptor comes
// once, "with a read in which b's first byte is, and nothing of what is written after".
func TestFilesInOrder(t *testing.T) {
	for _, faults := range []string{
		"", "writefiles*=short:1", "write*=short:3; writefiles*=short:2", "writefiles%0.5=EAGAIN", "writefiles%0.3=ENOBUFS",
		"writefiles%0.3=ETOOMANYREFS", "readfiles*=short:1", "readfiles%0.5=short:2; readfiles%0.3=EAGAIN",
	} {
		t.Run(faults, func(t *testing.T) {
			onEachRig(t, faults, func(t *testing.T, r *fileRig) {
				l := r.l
				const messages = 20
				fds := r.sockets(messages)
				var want, got []byte
				var first, last []int // where message i begins and ends
				var heard []int
				c := r.pair(ConnConfig{MaxFiles: messages}, ConnHandler{
					OnFiles: func(_ *Conn, f *Files) {
						if f.Len() != len(heard)%5+1 {
							t.Errorf("message %d has %d descriptors", len(heard), f.Len())
						}
						heard = append(heard, len(got))
					},
					OnData: func(_ *Conn, b []byte) {
						i := len(heard) - 1
						if i >= 0 && heard[i] == len(got) {
							if at := first[i] - len(got); at < 0 || at >= len(b) {
								t.Errorf("message %d begins at %d, and has come with %d bytes at %d", i, first[i], len(b), len(got))
							} else if over := len(got) + len(b) - last[i]; over > 0 {
								t.Errorf("%d bytes have come with message %d that were written after", over, i)
							}
						}
						if i+1 < messages && len(got)+len(b) > first[i+1] {
							t.Errorf("message %d begins at %d, and %d bytes at %d have come without", i+1, first[i+1], len(b), len(got))
						}
						if got = append(got, b...); len(got) == len(want) {
							_ = l.Close()
						}
					},
				}, ConnConfig{}, ConnHandler{})
				for i := range messages {
					text := bytes.Repeat([]byte{byte('a' + i)}, 1+i*i)
					if i%3 == 0 {
						_, _ = c.Write(text)
						want = append(want, text...)
					}
					first = append(first, len(want))
					if err := c.WriteFiles(text, fds[:i%5+1]...); err != nil {
						t.Fatal(err)
					}
					want = append(want, text...)
					last = append(last, len(want))
				}
				_, _ = c.Write([]byte("end"))
				want = append(want, "end"...)
				run(t, l)
				if len(heard) != messages || !bytes.Equal(got, want) {
					t.Errorf("%d messages with descriptors, %d bytes of %d", len(heard), len(got), len(want))
				}
			})
		})
	}
}

// TestFilesRefused: "ErrWouldBlock takes nothing", and OnDrain follows; a message for which there is room in an empty
// queue is taken.
func TestFilesRefused(t *testing.T) {
	for _, size := range []int{1, 3000} { // 64 messages; the write buffer
		onEachRig(t, "", func(t *testing.T, r *fileRig) {
			l := r.l
			fds := r.sockets(2)
			taken, received, bytesGot, drained := 0, 0, 0, 0
			var server *Conn
			cfg := ConnConfig{WriteBufferBytes: 50_000, SendBufferBytes: 4096}
			c := r.pair(ConnConfig{MaxFiles: 2}, ConnHandler{
				OnOpen:  func(c *Conn) { server = c; c.Pause() },
				OnFiles: func(_ *Conn, f *Files) { received += f.Len() },
				OnData:  func(_ *Conn, b []byte) { bytesGot += len(b) },
			}, cfg, ConnHandler{OnDrain: func(*Conn) { drained++ }})
			r.soon(func() {
				_, _ = c.Write(make([]byte, 40_000)) // more than the kernel takes
				l.NextTurn(func() {
					before := r.opened()
					var err error
					for range 1000 {
						if err = c.WriteFiles(make([]byte, size), fds...); err != nil {
							break
						}
						taken++
					}
					if err != ErrWouldBlock {
						t.Errorf("%d were taken, then %v", taken, err)
					}
					if after := r.opened(); after != before+2*taken {
						t.Errorf("%d are open, %d before, %d messages taken", after, before, taken)
					}
					server.Resume()
					r.soon(func() {
						if received != 2*taken || drained != 1 {
							t.Errorf("%d descriptors of %d messages came, OnDrain %d times", received, taken, drained)
						}
						if after := r.opened(); after != before {
							t.Errorf("%d are open, %d before", after, before)
						}
						_ = l.Close()
					})
				})
			})
			run(t, l)
		})
	}
}

// TestFilesGivenUp: a connection that ends closes the copies that wait.
func TestFilesGivenUp(t *testing.T) {
	for name, end := range map[string]func(l *Loop, c *Conn){
		"reset":     func(_ *Loop, c *Conn) { _ = c.Reset() },
		"loop ends": func(l *Loop, _ *Conn) { _ = l.Close() },
		"broken":    func(_ *Loop, c *Conn) { c.breakOff(syscall.EPIPE) },
	} {
		t.Run(name, func(t *testing.T) {
			onEachRig(t, "writefiles*=EAGAIN", func(t *testing.T, r *fileRig) {
				l := r.l
				fds := r.sockets(3)
				var c *Conn
				c = r.pair(ConnConfig{}, ConnHandler{}, ConnConfig{}, ConnHandler{OnOpen: func(*Conn) {
					before := r.opened()
					for range 5 {
						if err := c.WriteFiles([]byte("x"), fds...); err != nil {
							t.Error(err)
						}
					}
					if n := r.opened(); n != before+15 {
						t.Errorf("%d copies are open", n-before)
					}
					r.l.AfterFunc(time.Millisecond, func() {
						end(l, c)
						r.l.AfterFunc(0, func() {
							if n := r.opened(); n > before {
								t.Errorf("%d copies are still open", n-before)
							}
							_ = l.Close()
						})
					})
				}})
				was := r.opened()
				run(t, l)
				if n := r.opened(); n > was {
					t.Errorf("%d are open, %d before", n, was)
				}
			})
		})
	}
}

// TestFilesCallbackEnds: a Close or a panic in OnFiles closes what has come, and nothing is delivered any more.
func TestFilesCallbackEnds(t *testing.T) {
	for _, panics := range []bool{false, true} {
		onEachRig(t, "", func(t *testing.T, r *fileRig) {
			l := r.l
			fds := r.sockets(3)
			closed := 0
			c := r.pair(ConnConfig{MaxFiles: 3}, ConnHandler{
				OnFiles: func(c *Conn, f *Files) {
					if panics {
						panic("files")
					}
					_ = c.Close()
				},
				OnData: func(*Conn, []byte) { t.Error("bytes are delivered") },
				OnClose: func(_ *Conn, err error) {
					closed++
					r.l.AfterFunc(0, func() { _ = l.Close() })
				},
			}, ConnConfig{}, ConnHandler{})
			if err := c.WriteFiles([]byte("x"), fds...); err != nil {
				t.Fatal(err)
			}
			before := r.opened()
			func() {
				defer func() {
					if p := recover(); (p != nil) != panics {
						t.Errorf("recovered %v", p)
					}
				}()
				run(t, l)
			}()
			if n := r.opened(); closed != 1 || n > before {
				t.Errorf("%d calls of OnClose, %d open, %d before", closed, n, before)
			}
		})
	}
}

// TestFilesNoDescriptors: a process that may open none gets the bytes, and hears that there were descriptors.
func TestFilesNoDescriptors(t *testing.T) {
	onEachRig(t, "", func(t *testing.T, r *fileRig) {
		if r.limit == nil {
			t.Skip("the process would be left without descriptors; the contract suite does it")
		}
		l := r.l
		fds := r.sockets(3)
		heard := -1
		c := r.pair(ConnConfig{MaxFiles: 3}, ConnHandler{
			OnFiles: func(_ *Conn, f *Files) {
				if heard = f.Len(); !f.Truncated() {
					t.Error("nothing is said of those that are lost")
				}
			},
			OnData: func(_ *Conn, b []byte) { _ = l.Close() },
		}, ConnConfig{}, ConnHandler{})
		r.soon(func() {
			if err := c.WriteFiles([]byte("x"), fds...); err != nil {
				t.Error(err)
			}
			c.flush()
			r.limit(1)
		})
		run(t, l)
		if heard != 1 {
			t.Errorf("OnFiles heard of %d", heard)
		}
	})
}

// TestFilesErrors: each takes nothing.
func TestFilesErrors(t *testing.T) {
	onEachRig(t, "dup#2=EMFILE", func(t *testing.T, r *fileRig) {
		l := r.l
		fds := r.sockets(3)
		tcp := dialTo(t, l, serve(t, l, ListenerConfig{}, ConnHandler{}), ConnConfig{}, ConnHandler{})
		c := r.pair(ConnConfig{}, ConnHandler{}, ConnConfig{}, ConnHandler{})
		before := r.opened()
		for _, row := range []struct {
			what string
			err  error
			want error
		}{
			{"no room for a copy", c.WriteFiles([]byte("x"), fds...), syscall.EMFILE},
			{"TCP", tcp.WriteFiles([]byte("x"), fds...), syscall.EOPNOTSUPP},
			{"no bytes", c.WriteFiles(nil, fds...), syscall.EINVAL},
			{"no descriptors", c.WriteFiles([]byte("x")), syscall.EINVAL},
			{"too many", c.WriteFiles([]byte("x"), make([]int, 254)...), syscall.EINVAL},
			{"no descriptor", c.WriteFiles([]byte("x"), fds[0], 99_999), syscall.EBADF},
		} {
			var op *OpError
			if !errors.As(row.err, &op) || op.Op != "send" || !errors.Is(row.err, row.want) {
				t.Errorf("%s: %v, want %v", row.what, row.err, row.want)
			}
		}
		if s := c.Stats(); s.Queued != 0 || c.out.Items() != 0 || r.opened() != before {
			t.Errorf("%d bytes and %d messages are queued, %d descriptors open, %d before", s.Queued, c.out.Items(), r.opened(), before)
		}
		_ = c.CloseWrite()
		if err := c.WriteFiles([]byte("x"), fds...); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("after CloseWrite: %v", err)
		}
		_ = c.Reset()
		if err := c.WriteFiles([]byte("x"), fds...); err != ErrClosed {
			t.Errorf("after Reset: %v", err)
		}
		if s := l.Stats().Streams; s.FilesSent != 0 {
			t.Errorf("%d were sent", s.FilesSent)
		}
	})
}
