package weirhttp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// isRefused says whether a QUIC connection was answered CONNECTION_REFUSED.
func isRefused(err error) bool {
	e, ok := errors.AsType[*quic.TransportError](err)
	return ok && e.Remote && e.ErrorCode == quic.ConnectionRefused
}

// No source fills what is for all: what is beyond the limit is closed at once, and another source goes on.
func TestServerSourceLimit(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{MaxConns: 8, MaxConnsPerSource: 4}, hello)
	var conns []net.Conn
	for range 4 {
		conns = append(conns, v.dialTLS("http/1.1"))
	}
	isReset(t, v.addr)
	v.fillQUIC(4)
	if _, err := v.dialQUIC(t.Context(), nil); !isRefused(err) {
		t.Errorf("a fifth QUIC connection: %v", err)
	}
	st := v.Stats()
	if st.TCP.Refused.Source != 1 || st.TCP.Open != 4 || st.QUIC.Refused.Source == 0 || st.QUIC.Open != 4 {
		t.Errorf("Stats: %+v", st)
	}
	other, err := dialFrom("127.0.0.2", v.addr)
	if err != nil {
		t.Logf("no second address here: %v", err)
	} else {
		defer other.Close()
		eventually(t, "another source", func() bool { return v.Stats().TCP.Open == 5 })
	}
	_ = conns[0].Close()
	eventually(t, "one to leave", func() bool { c, _ := v.core.tcp.opened(); return c < 5 && v.Stats().HTTP1.Open < 4 })
	v.dialTLS("http/1.1")
}

// fillQUIC opens n connections, one after the other.
func (v *serving) fillQUIC(n int) {
	v.t.Helper()
	for range n {
		if _, err := v.dialQUIC(v.t.Context(), nil); err != nil {
			v.t.Fatal(err)
		}
		// The client is through with it before the server is.
		eventually(v.t, "the handshake", func() bool { return v.Stats().QUIC.Handshakes == 0 })
	}
}

// isReset waits until a new connection is closed, or is reset before Dial is done.
func isReset(t *testing.T, addr string) {
	t.Helper()
	if c, err := net.Dial("tcp", addr); err == nil {
		defer c.Close()
		isClosed(t, c)
	}
}

func dialFrom(ip, addr string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	return d.Dial("tcp", addr)
}

func TestServerConnLimit(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{MaxConns: 4, MaxConnsPerSource: -1}, hello)
	for range 4 {
		v.dialTLS("h2")
	}
	v.fillQUIC(4)
	isReset(t, v.addr)
	if _, err := v.dialQUIC(t.Context(), nil); !isRefused(err) {
		t.Errorf("a fifth QUIC connection: %v", err)
	}
	if st := v.Stats(); st.TCP.Refused.Conns != 1 || st.QUIC.Refused.Conns == 0 {
		t.Errorf("Stats: %+v", st)
	}
}

// "Those beyond it wait with TCP": silent handshakes hold up others of their source, which come in when those are over.
func TestServerHandshakeLimitTCP(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{MaxHandshakesPerSource: 2}, hello)
	var silent []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", v.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	eventually(t, "two handshakes", func() bool { return v.Stats().TCP.Handshakes == 2 })
	done := make(chan string, 1)
	go func() {
		body, _, err := v.tryGet(v.client("HTTP/1.1"), "/")
		done <- body
		if err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "a third connection", func() bool { return v.Stats().TCP.Open == 3 })
	if st := v.Stats().TCP; st.Handshakes != 2 || st.Done != 0 {
		t.Errorf("the third did not wait: %+v", st)
	}
	_ = silent[0].Close()
	if body := <-done; body != "hello HTTP/1.1" {
		t.Errorf("the third got %q", body)
	}
}

// A handshake that waits for its turn when the Server shuts down has met no limit.
func TestServerHandshakeStopping(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{MaxHandshakesPerSource: 1}, hello)
	for range 2 {
		c, err := net.Dial("tcp", v.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	eventually(t, "one at work and one that waits", func() bool { st := v.Stats().TCP; return st.Open == 2 && st.Handshakes == 1 })
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if st := v.Stats().TCP; st.Refused != (Refused{Stopping: 1}) || st.Failed != 1 {
		t.Errorf("Stats: %+v", st)
	}
}

// A client through a pretended load still connects: it shows by Retry that its address is its own.
func TestServerRetry(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{MaxHandshakes: 4, MaxHandshakesPerSource: 2}, hello)
	f := newFlood(t, v.addr)
	f.initial()
	eventually(t, "a handshake that comes to nothing", func() bool { return v.Stats().QUIC.Handshakes == 1 })
	if body, _ := v.get(v.client("HTTP/3.0"), "/"); body != "hello HTTP/3.0" {
		t.Errorf("%q", body)
	}
	st := v.Stats().QUIC
	if st.Retries == 0 || st.Done != 1 || st.Refused != (Refused{}) {
		t.Errorf("Stats: %+v", st)
	}
}

// What is beyond the limit of handshakes is refused, also of those who have shown their address.
func TestServerHandshakeLimitQUIC(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{MaxHandshakes: 2, MaxHandshakesPerSource: 1}, hello)
	newFlood(t, v.addr).initial()
	eventually(t, "a handshake that comes to nothing", func() bool { return v.Stats().QUIC.Handshakes == 1 })
	if _, err := v.dialQUIC(t.Context(), nil); !isRefused(err) {
		t.Errorf("a second handshake of the source: %v", err)
	}
	if st := v.Stats().QUIC; st.Refused.Handshakes == 0 || st.Retries == 0 || st.Handshakes != 1 {
		t.Errorf("Stats: %+v", st)
	}
}

// MaxRequests is what a connection may ask for at once.
func TestServerRequestLimit(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{MaxRequests: 3}, hello)
	c, err := v.dialQUIC(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.OpenStream(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.OpenStream(); err == nil {
		t.Error("a fourth stream")
	}
	got, err := settingsOfHTTP2(v.dialTLS("h2"))
	if err != nil || got[settingMaxStreams] != 3 {
		t.Errorf("HTTP/2 tells settings %v, %v", got, err)
	}
}

const settingMaxStreams = 3

// settingsOfHTTP2 reads the server's first frame (RFC 9113, section 6.5).
func settingsOfHTTP2(c net.Conn) (map[int]int, error) {
	_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	_ = c.SetReadDeadline(time.Now().Add(patience))
	head := make([]byte, 9)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, err
	}
	if head[3] != 4 {
		return nil, errors.New("no SETTINGS")
	}
	body := make([]byte, int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(c, body); err != nil {
		return nil, err
	}
	all := map[int]int{}
	for ; len(body) >= 6; body = body[6:] {
		all[int(body[0])<<8|int(body[1])] = int(body[2])<<24 | int(body[3])<<16 | int(body[4])<<8 | int(body[5])
	}
	return all, nil
}

// A client that sends all it may, to handlers that read nothing, is held back by the first window of the connection; what
// is read later arrives whole.
func TestServerWindow(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	v := serve(t, &Server{}, func(w http.ResponseWriter, r *http.Request) {
		<-read
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n, err)
	})
	const size, requests = 4 << 20, 4
	var taken atomic.Int64
	done := make(chan string, requests)
	c := v.client("HTTP/3.0")
	for range requests {
		go func() {
			resp, err := c.Post("https://"+v.addr, "text/plain", &countedReader{left: size, taken: &taken})
			if err != nil {
				done <- err.Error()
				return
			}
			defer resp.Body.Close()
			got, _ := io.ReadAll(resp.Body)
			done <- string(got)
		}()
	}
	eventually(t, "half a window", func() bool { return taken.Load() > firstConnWindow/2 })
	time.Sleep(300 * time.Millisecond)
	if n := taken.Load(); n > firstConnWindow*3/2 { // the client's buffers are the half
		t.Errorf("%d bytes were taken from the client, unread", n)
	}
	close(read)
	for range requests {
		if got, want := <-done, fmt.Sprint(int64(size), nil); got != want {
			t.Errorf("a handler read %s, want %s", got, want)
		}
	}
}

// countedReader has so many bytes, and counts what is taken.
type countedReader struct {
	left  int
	taken *atomic.Int64
}

func (r *countedReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.left)
	r.left -= n
	r.taken.Add(int64(n))
	return n, nil
}

// What a connection's window has grown by is given back with it, and a connection that is over grows no more.
func TestQUICConnWindow(t *testing.T) {
	t.Parallel()
	c := newCore(&Server{})
	p, _ := c.quic.enter(textAddr("192.0.2.1:1"))
	conn := &quicConn{core: c, admission: p}
	for range 2 {
		if !conn.grow(1 << 20) {
			t.Error("it does not grow")
		}
	}
	if c.windows.all != 2<<20 {
		t.Errorf("%d bytes", c.windows.all)
	}
	conn.gone()
	if c.windows.all != 0 || len(c.windows.sources) != 0 || conn.grow(1) {
		t.Errorf("%d bytes after it", c.windows.all)
	}
}
