package weirhttp

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// short is for what is waited for; the tests assert that it comes, not when.
	short = 300 * time.Millisecond
	// ample is what a handshake or a request keeps to on a busy machine, too.
	ample = 2 * time.Second
)

// A peer that connects and says nothing, or does not end its handshake, is closed and counted.
func TestServerSilentHandshake(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{HandshakeTimeout: ample}, hello)
	c, err := net.Dial("tcp", v.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	newFlood(t, v.addr).initial()
	isClosed(t, c)
	eventually(t, "both to fail", func() bool { st := v.Stats(); return st.TCP.Failed == 1 && st.QUIC.Failed == 1 })
	eventually(t, "both to leave", func() bool { st := v.Stats(); return st.TCP.Open == 0 && st.QUIC.Open == 0 })
	// What was quick enough has no deadline afterwards.
	clients := []*http.Client{v.client("HTTP/1.1"), v.client("HTTP/2.0"), v.client("HTTP/3.0")}
	for _, c := range clients {
		v.get(c, "/")
	}
	time.Sleep(ample)
	for _, c := range clients {
		v.get(c, "/")
	}
	if st := v.Stats(); st.HTTP1.Conns != 1 || st.HTTP2.Conns != 1 || st.HTTP3.Conns != 1 {
		t.Errorf("Stats: %+v", st)
	}
}

func TestServerSlowHeaders(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{ReadHeaderTimeout: short, IdleTimeout: 2 * short}, hello)
	c := v.dialTLS("http/1.1")
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n")
	isClosed(t, c)

	// HEADERS of 100 bytes, of which one comes now and then: the connection is busy, but its request does not come.
	q, err := v.dialQUIC(t.Context(), &quic.Config{KeepAlivePeriod: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s, err := q.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = s.Write([]byte{1, 0x40, 100})
	dripped := make(chan struct{})
	go func() {
		defer close(dripped)
		for q.Context().Err() == nil {
			_, _ = s.Write([]byte{0})
			time.Sleep(20 * time.Millisecond)
		}
	}()
	isQUICClosed(t, q)
	<-dripped
	if st := v.Stats(); st.HTTP1.Requests+st.HTTP3.Requests != 0 {
		t.Errorf("Stats: %+v", st)
	}
}

// A connection without a request is closed, one with a handler that is silent for longer is not.
func TestServerIdle(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{IdleTimeout: ample}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(2 * ample)
		}
		hello(w, r)
	})
	var clients sync.WaitGroup
	for _, version := range versions {
		c := v.client(version)
		clients.Go(func() {
			if body, _, err := v.tryGet(c, "/slow"); body != "hello "+version || err != nil {
				t.Errorf("%s: %q, %v", version, body, err)
			}
		})
	}
	clients.Wait()
	eventually(t, "all to leave", func() bool { st := v.Stats(); return st.TCP.Open == 0 && st.QUIC.Open == 0 })
	q, err := v.dialQUIC(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	isQUICClosed(t, q)
}

// A timer that fires while a request comes and goes closes nothing: the response may be on its way.
func TestQUICConnIdleLate(t *testing.T) {
	t.Parallel()
	c := newCore(&Server{IdleTimeout: time.Hour})
	a, _ := c.quic.enter(textAddr("192.0.2.1:1"))
	conn := &quicConn{core: c, admission: a}
	conn.accepted(nil) // closing it would panic
	defer conn.gone()
	conn.begin()
	conn.timeOut()
	conn.finish()
	conn.timeOut()
}

// ReadTimeout and WriteTimeout are those of a request, for all versions alike.
func TestServerReadWriteTimeout(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	v := serve(t, &Server{ReadTimeout: short, WriteTimeout: 2 * short}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, err := io.Copy(io.Discard, r.Body)
			failed <- err
			return
		}
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				failed <- err
				return
			}
		}
	})
	for _, version := range versions {
		body, hold := io.Pipe()
		go func() {
			resp, err := v.client(version).Post("https://"+v.addr, "text/plain", body)
			if err == nil {
				_ = resp.Body.Close()
			}
		}()
		_, _ = io.WriteString(hold, "begins, and does not end")
		if err := receive(failed); err == nil || errors.Is(err, errInVain) {
			t.Errorf("%s: a body that does not end: %v", version, err)
		}
		_ = hold.Close()
		resp, err := v.client(version).Get("https://" + v.addr)
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if err := receive(failed); err == nil || errors.Is(err, errInVain) {
			t.Errorf("%s: a response that nobody reads: %v", version, err)
		}
		_ = resp.Body.Close()
	}
}

var errInVain = errors.New("waited in vain")

func receive(c <-chan error) error {
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		return errInVain
	}
}

// Who speaks http to the port is told so.
func TestServerPlainHTTP(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{}, hello)
	resp, err := http.Get("http://" + v.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "https") {
		t.Errorf("%s %q", resp.Status, body)
	}
	http.DefaultClient.CloseIdleConnections()
}

// Headers beyond MaxHeaderBytes are refused, those that fit are not.
func TestServerHeaderBytes(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{MaxHeaderBytes: 8 << 10}, hello)
	for _, version := range versions {
		for size, want := range map[int]int{4 << 10: 200, 64 << 10: 431} {
			r, _ := http.NewRequest(http.MethodGet, "https://"+v.addr, nil)
			r.Header.Set("X", strings.Repeat("x", size))
			resp, err := v.client(version).Do(r)
			if err != nil { // the client may see that it is refused before it is done
				if want == 200 {
					t.Errorf("%s: %v", version, err)
				}
				continue
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s: %d for %d bytes", version, resp.StatusCode, size)
			}
		}
	}
}
