package weirtls

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

// temporary is an error after which crypto/tls reads again, when it comes as it is.
type temporary struct{}

func (temporary) Error() string   { return "not yet" }
func (temporary) Timeout() bool   { return false }
func (temporary) Temporary() bool { return true }

// TestTemporary: what this package builds on, after a handshake, is that a tls.Conn goes on after a read that failed
// temporarily, in the middle of a record, too; and only where the error has that method itself.
func TestTemporary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		err   error
		again bool
	}{
		{"as it is", temporary{}, true},
		{"in an OpError, which has that method, too", &net.OpError{Op: "read", Err: temporary{}}, true},
		{"wrapped", fmt.Errorf("weirtls: %w", temporary{}), false},
		{"no room", weir.ErrWouldBlock, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := net.Pipe()
			hiccups := &hiccupping{Conn: a}
			server, client := tls.Server(hiccups, serverTLS(0)), tls.Client(b, clientTLS(0))
			done := make(chan error, 1)
			go func() {
				err := client.Handshake()
				if err == nil {
					_, err = client.Write([]byte("hello"))
				}
				done <- err
				_, _ = io.Copy(io.Discard, b)
			}()
			if err := server.Handshake(); err != nil {
				t.Fatal(err)
			}
			hiccups.err = c.err
			var got []byte
			var err error
			for range 50 {
				var n int
				b := make([]byte, 100)
				n, err = server.Read(b)
				if got = append(got, b[:n]...); err == nil {
					break
				}
			}
			if again := string(got) == "hello"; again != c.again {
				t.Errorf("read %q, and then %v", got, err)
			}
			_ = a.Close()
			_ = b.Close()
			<-done
		})
	}
}

// hiccupping reads a byte, and fails, by turns.
type hiccupping struct {
	net.Conn
	err   error // nil: it does not
	fails bool
}

func (c *hiccupping) Read(b []byte) (int, error) {
	if c.err == nil {
		return c.Conn.Read(b)
	}
	if c.fails = !c.fails; c.fails {
		return 0, c.err
	}
	return c.Conn.Read(b[:1])
}

// TestThreadLockBlocking holds "Blocking runs each handshake on a goroutine of its own, so that the callbacks of TLS may
// … lock their thread".
func TestThreadLockBlocking(t *testing.T) {
	t.Parallel()
	playOnBoth(t, func(s *scene) { lockThread(s, true) })
}

// lockThread has a callback of TLS lock its thread, and not unlock it.
func lockThread(s *scene, blocking bool) {
	cfg := serverTLS(0)
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		runtime.LockOSThread()
		return nil, nil
	}
	server := newEar(s.t, "server")
	server.on("handshake", func(c *Conn) { must(s.t, c.Close()) })
	server.on("close", func(*Conn) { _ = s.l.Close() })
	to := s.listen(Config{TLS: cfg, Blocking: blocking}, weir.ListenerConfig{}, server.handler())
	s.dial(to, Config{}, weir.ConnConfig{}, Handler{})
	s.run()
	server.told("open handshake close", nil)
}

const threadEnv = "WEIRTLS_TEST_LOCKS_THREAD"

// TestThreadLock: "must neither block nor lock the goroutine to its thread" is no mere advice: the runtime ends the
// process. It is worth knowing when that changes.
func TestThreadLock(t *testing.T) {
	t.Parallel()
	if os.Getenv(threadEnv) != "" {
		lockThread(newScene(t, nil), false)
		return
	}
	if testing.Short() {
		t.Skip("it starts a process")
	}
	newScene(t, nil) // which skips it where there is none
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestThreadLock$")
	cmd.Env = append(os.Environ(), threadEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "coro: OS thread locking must match locking at coroutine creation") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestLockedLoop: a loop whose goroutine is locked to its thread has handshakes, too, also those that were begun before
// on another goroutine.
func TestLockedLoop(t *testing.T) {
	t.Parallel()
	playOnBoth(t, func(s *scene) {
		server, client := newEar(s.t, "server"), newEar(s.t, "client")
		server.on("data", func(c *Conn) { _, _ = c.Write(server.data) })
		client.on("handshake", func(c *Conn) { _, _ = c.Write([]byte("hello")) })
		client.on("data", func(c *Conn) { must(s.t, c.Close()) })
		s.dial(s.serve(server.handler()), Config{}, weir.ConnConfig{}, client.handler())
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			s.runUntilOver(server, client)
		}()
		<-done
		client.told("open handshake data close", nil)
		server.told("open handshake data end close", nil)
	})
}

// TestTLSCallbackBreaks: a callback of TLS that panics, or with Blocking ends its goroutine, fails its handshake and
// nothing else.
func TestTLSCallbackBreaks(t *testing.T) {
	t.Parallel()
	for _, role := range []Role{AsServer, AsClient} {
		for _, c := range []struct {
			name     string
			breaks   func()
			blocking bool
		}{
			{"panic", func() { panic("oh no") }, false},
			{"panic, blocking", func() { panic("oh no") }, true},
			{"panic of an error, blocking", func() { panic(io.ErrNoProgress) }, true},
			{"Goexit, blocking", runtime.Goexit, true},
		} {
			t.Run(fmt.Sprint(role, " ", c.name), func(t *testing.T) {
				playOnBoth(t, func(s *scene) { breakInTLS(s, role, c.breaks, c.blocking) })
			})
		}
	}
}

//go:noinline
func breakHere(breaks func()) { breaks() }

func breakInTLS(s *scene, role Role, breaks func(), blocking bool) {
	t := s.t
	e, other, good := newEar(t, role.String()), newEar(t, "the other"), newEar(t, "a good one")
	serverConfig, clientConfig := serverTLS(0), clientTLS(0)
	server, client := e, other
	if role == AsServer {
		serverConfig.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			breakHere(breaks)
			return nil, nil
		}
		serverConfig.Certificates = nil
	} else {
		server, client = other, e
		clientConfig.VerifyConnection = func(tls.ConnectionState) error { breakHere(breaks); return nil }
	}
	to := s.listen(Config{TLS: serverConfig, Blocking: blocking && role == AsServer}, weir.ListenerConfig{}, server.handler())
	s.dial(to, Config{TLS: clientConfig, Blocking: blocking && role == AsClient}, weir.ConnConfig{}, client.handler())
	s.when(func() bool { return e.closes+other.closes == 2 }, func() {
		good.on("handshake", func(c *Conn) { must(t, c.Close()) })
		s.dial(s.serve(Handler{}), Config{}, weir.ConnConfig{}, good.handler())
	})
	s.when(func() bool { return good.closes > 0 }, func() {
		e.told("open close", e.err)
		h := e.failed(KindPanic)
		if h.Role != role || !strings.Contains(string(h.Stack), "weirtls.breakHere") {
			t.Errorf("the role is %v, the stack\n%s", h.Role, h.Stack)
		}
		if st := HandshakesOf(s.l).Stats(); st.Failed[KindPanic] != 1 {
			t.Errorf("%d handshakes are counted as panicked", st.Failed[KindPanic])
		}
		good.told("open handshake close", nil)
		_ = s.l.Close()
	})
	s.run()
	s.nothingLeft()
}

// TestGoexitInTLS: on the loop's goroutine a callback of TLS that ends its goroutine ends the loop, as other callbacks
// do, and leaves nothing behind.
func TestGoexitInTLS(t *testing.T) {
	t.Parallel()
	playInMemory(t, func(s *scene) {
		server, other := newEar(t, "server"), newEar(t, "another")
		cfg := serverTLS(0)
		cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { runtime.Goexit(); return nil, nil }
		to := s.listen(Config{TLS: cfg}, weir.ListenerConfig{}, server.handler())
		s.dial(s.listenPlain(weir.ListenerConfig{}, weir.ConnHandler{}), Config{}, weir.ConnConfig{}, other.handler())
		s.after(10*time.Millisecond, func() { s.dial(to, Config{}, weir.ConnConfig{}, Handler{}) })
		if returned, _ := s.runBroken(); returned {
			t.Error("Run has returned")
		}
		if server.closes != 1 || other.closes != 1 {
			t.Errorf("OnClose was called %d and %d times", server.closes, other.closes)
		}
		s.nothingLeft()
	})
}

// runBroken runs the loop on a goroutine that may be ended, and tells what it panicked with.
func (s *scene) runBroken() (returned bool, value any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { value = recover() }()
		s.run()
		returned = true
	}()
	<-done
	select {
	case <-s.l.Done():
	default:
		s.t.Error("the loop is not over")
	}
	return returned, value
}

// TestBreaks: a panic, or runtime.Goexit, in a call passes through Run, and leaves nothing behind.
func TestBreaks(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"open", "handshake", "data", "drain", "end", "stop", "close"} {
		for name, breaks := range map[string]func(){"panic": func() { panic("oh no") }, "Goexit": runtime.Goexit} {
			for _, blocking := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " in ", in, ", blocking ", blocking), func(t *testing.T) {
					playInMemory(t, func(s *scene) {
						server, client := newEar(t, "server"), newEar(t, "client")
						message := pattern(100_000)
						server.on("handshake", func(c *Conn) {
							for range 100 {
								if _, err := c.Write(message); err != nil {
									return
								}
							}
						})
						client.on("handshake", func(c *Conn) { _, _ = c.Write(message) })
						client.on("data", func(c *Conn) {
							if in != "stop" && in != "drain" && len(client.data) > len(message) {
								_ = c.CloseWrite()
							}
						})
						before := server.do[in]
						server.on(in, func(c *Conn) {
							if before != nil {
								before(c)
							}
							server.do[in] = nil
							breakHere(breaks)
						})
						to := s.listen(Config{TLS: serverTLS(0), Blocking: blocking},
							weir.ListenerConfig{Conn: weir.ConnConfig{WriteBufferBytes: 50_000}}, server.handler())
						s.dial(to, Config{Blocking: blocking}, weir.ConnConfig{}, client.handler())
						silent := s.listenPlain(weir.ListenerConfig{}, weir.ConnHandler{})
						inHandshake := newEar(t, "one in its handshake")
						s.dial(silent, Config{Blocking: blocking}, weir.ConnConfig{}, inHandshake.handler())
						s.after(time.Second, func() { s.l.Stop(time.Second) })
						returned, value := s.runBroken()
						if want := map[string]any{"panic": "oh no"}[name]; returned || value != want {
							t.Errorf("returned %v, with %v; %v", returned, value, server.calls)
						}
						for _, e := range []*ear{server, client, inHandshake} {
							if e.closes != 1 {
								t.Errorf("%s: OnClose was called %d times", e.name, e.closes)
							}
						}
						s.nothingLeft()
					})
				})
			}
		}
	}
}

// TestRunEnds: whatever ends the loop in the middle of handshakes, nothing is left of them.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *scene, cancel func()){
		"context": func(_ *scene, cancel func()) { cancel() },
		"Close":   func(s *scene, _ func()) { _ = s.l.Close() },
		"Stop":    func(s *scene, _ func()) { s.l.Stop(time.Second) },
		"panic":   func(*scene, func()) { panic("oh no") },
		"Goexit":  func(*scene, func()) { runtime.Goexit() },
	} {
		for _, blocking := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", blocking ", blocking), func(t *testing.T) {
				playOnBoth(t, func(s *scene) {
					runEnds(s, blocking, func(cancel func()) { end(s, cancel) })
				})
			})
		}
	}
}

func runEnds(s *scene, blocking bool, end func(cancel func())) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var ears []*ear
	hello := firstFlight(s.t, clientTLS(0))
	silent := s.listenPlain(weir.ListenerConfig{}, weir.ConnHandler{})
	for i := range 8 {
		server, client := newEar(s.t, "server"), newEar(s.t, "client")
		ears = append(ears, server, client)
		to := s.listen(Config{TLS: serverTLS(0), Blocking: blocking}, weir.ListenerConfig{}, server.handler())
		says := hello[:len(hello)*i/7] // from nothing to all
		s.dialPlain(to, weir.ConnConfig{}, weir.ConnHandler{OnOpen: func(c *weir.Conn) { _, _ = c.Write(says) }})
		s.dial(silent, Config{Blocking: blocking}, weir.ConnConfig{}, client.handler())
	}
	s.when(func() bool { // all clients, and the server that has all of a hello
		st := HandshakesOf(s.l).Stats()
		return st.InProgress == len(ears)/2+1 && st.Waiting == len(ears)/2-1
	}, func() { end(cancel) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		if err := s.l.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			s.t.Error(err)
		}
	}()
	<-done
	for _, e := range ears {
		if e.closes != 1 {
			s.t.Errorf("%s: OnClose was called %d times", e.name, e.closes)
		}
	}
	s.nothingLeft()
}
