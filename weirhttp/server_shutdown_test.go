package weirhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// "Shutdown lets requests in progress end", of all versions.
func TestShutdownRequests(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	v := serve(t, &Server{}, func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-leave
		hello(w, r)
	})
	answers := make(chan string, len(versions))
	for _, version := range versions {
		c := v.client(version)
		go func() {
			body, _, err := v.tryGet(c, "/")
			answers <- fmt.Sprint(body, err)
		}()
		<-entered
	}
	done := make(chan error, 1)
	go func() { done <- v.Shutdown(context.Background()) }()
	if err := <-v.result; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
	v.result <- http.ErrServerClosed
	if _, err := v.dialQUIC(t.Context(), nil); !isRefused(err) {
		t.Errorf("a new connection of QUIC: %v", err)
	}
	if c, err := dialFrom("127.0.0.1", v.addr); err == nil {
		_ = c.Close()
		t.Error("a new connection of TCP came in")
	}
	select {
	case err := <-done:
		t.Fatalf("Shutdown did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	close(leave)
	got := []string{<-answers, <-answers, <-answers}
	for _, version := range versions {
		if !strings.Contains(strings.Join(got, "\n"), "hello "+version+"<nil>") {
			t.Errorf("%s is missing of %q", version, got)
		}
	}
	if err := receive(done); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if st := v.Stats(); st.QUIC.Refused.Stopping == 0 {
		t.Errorf("Stats: %+v", st)
	}
}

// A connection on which nothing happens is closed by Shutdown, without error, once its client was told.
func TestShutdownIdle(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{}, hello)
	q, err := v.dialQUIC(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	control, err := q.AcceptUniStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	frames := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(control)
		frames <- b
	}()
	if err := v.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	isQUICClosed(t, q)
	// RFC 9114, section 7.2.6: type 7, one byte long, for streams from 0 on.
	if b := <-frames; !strings.HasSuffix(string(b), "\x07\x01\x00") {
		t.Errorf("no GOAWAY at the end of the control stream: %x", b)
	}
}

// "When ctx ends, all that is left is closed at once, and its error returned; handlers find their contexts ended."
func TestShutdownDeadline(t *testing.T) {
	t.Parallel()
	entered, ended := make(chan struct{}), make(chan error, len(versions))
	v := serve(t, &Server{}, func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
		ended <- nil
	})
	var clients sync.WaitGroup
	defer clients.Wait()
	for _, version := range versions {
		c := v.client(version)
		clients.Go(func() {
			if body, _, err := v.tryGet(c, "/"); err == nil {
				t.Errorf("%s: answered %q", version, body)
			}
		})
		<-entered
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := v.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	for range versions {
		if err := receive(ended); err != nil {
			t.Errorf("a handler's context: %v", err)
		}
	}
}

// Twice at once, before Serve, after it, and with Close in the middle.
func TestShutdownOrder(t *testing.T) {
	t.Parallel()
	t.Run("before Serve", func(t *testing.T) {
		t.Parallel()
		s := &Server{}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("ListenAndServe: %v", err)
		}
		serve(t, &Server{}, hello) // another is not concerned
	})
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		v := serve(t, &Server{}, hello)
		v.get(v.client("HTTP/3.0"), "/")
		both := make(chan error, 2)
		for range 2 {
			go func() { both <- v.Shutdown(context.Background()) }()
		}
		if one, two := receive(both), receive(both); one != nil || two != nil {
			t.Errorf("Shutdown: %v, %v", one, two)
		}
		if err := v.Shutdown(t.Context()); err != nil {
			t.Errorf("a third time: %v", err)
		}
		if err := v.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := v.Serve(nil, nil); err == nil {
			t.Error("Serve after Shutdown")
		}
	})
	t.Run("Close in the middle", func(t *testing.T) {
		t.Parallel()
		entered := make(chan struct{})
		v := serve(t, &Server{}, func(_ http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			<-r.Context().Done()
		})
		for _, version := range versions {
			c := v.client(version)
			go func() { _, _, _ = v.tryGet(c, "/") }()
			<-entered
		}
		done := make(chan error, 1)
		go func() { done <- v.Shutdown(context.Background()) }()
		eventually(t, "Shutdown to begin", v.stopped)
		if err := v.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := receive(done); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	t.Run("ctx is over", func(t *testing.T) {
		t.Parallel()
		v := serve(t, &Server{}, hello)
		v.get(v.client("HTTP/3.0"), "/")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := v.Shutdown(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// What Shutdown waits for stays whole when a Serve that broke at the same time takes its endpoint away.
func TestShutdownWhileServeBreaks(t *testing.T) {
	t.Parallel()
	s := &Server{}
	var gone [2]*endpoint
	for i := range gone {
		gone[i] = &endpoint{gone: make(chan struct{})}
		gone[i].once.Do(func() { close(gone[i].gone) })
	}
	s.endpoints = append(s.endpoints, gone[:]...)
	waited := s.stop()
	s.remove(gone[0])
	if !slices.Equal(waited, gone[:]) {
		t.Errorf("%v, want %v", waited, gone)
	}
}

// A handler that takes no notice of its context does not hold up Close.
func TestCloseHandler(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	v := serve(t, &Server{}, func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	})
	defer close(leave)
	for _, version := range versions {
		c := v.client(version)
		go func() { _, _, _ = v.tryGet(c, "/") }()
		<-entered
	}
	closed := make(chan error, 1)
	go func() { closed <- v.Close() }()
	if err := receive(closed); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// Shutdown in the middle of traffic fails no request of those that the server took: a client that is told of it, or
// refused, is the only one without an answer.
func TestShutdownTraffic(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{}, hello)
	var clients sync.WaitGroup
	for range 16 {
		rt := &http3.Transport{TLSClientConfig: servingClientTLS()}
		clients.Go(func() {
			defer rt.Close()
			c := &http.Client{Transport: rt}
			for {
				body, _, err := v.tryGet(c, "/")
				if err != nil {
					if !v.stopped() {
						t.Errorf("before Shutdown: %v", err)
					}
					return
				}
				if body != "hello HTTP/3.0" {
					t.Errorf("answered %q", body)
				}
			}
		})
	}
	eventually(t, "traffic", func() bool { return v.Stats().HTTP3.Requests > 200 })
	if err := v.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	clients.Wait()
}
