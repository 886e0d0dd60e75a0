package weirhttp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// A response that was written just before Shutdown arrives complete, on each of many connections.
func TestShutdownDelivers(t *testing.T) {
	t.Parallel()
	shutdownDelivers(t, 60)
}

// shutdownDelivers has each of n connections of HTTP/3 ask for something, and shuts down when all handlers are about to
// write their answer.
func shutdownDelivers(t *testing.T, n int) {
	const size = 40_000
	entered, leave := make(chan struct{}, n), make(chan struct{})
	v := serve(t, &Server{MaxConnsPerSource: 2 * n, MaxHandshakes: 2 * n, MaxHandshakesPerSource: n}, func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-leave
		_, _ = w.Write(make([]byte, size))
	})
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	tr := &quic.Transport{Conn: socket}
	defer tr.Close()
	to, err := net.ResolveUDPAddr("udp", v.addr)
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, _ string, cfg *quic.Config) (*quic.Conn, error) {
		return tr.Dial(ctx, to, servingClientTLS("h3"), cfg)
	}
	answers := make(chan error, n)
	room := make(chan struct{}, 32) // handshakes at once: the socket of the clients is one
	var asking sync.WaitGroup
	for range n {
		room <- struct{}{}
		asking.Go(func() {
			answers <- askOnce(v.addr, size, func() (*quic.Conn, error) {
				defer func() { <-room }()
				return dial(context.Background(), v.addr, nil)
			})
		})
	}
	failed := 0
	for range n {
		select {
		case <-entered:
		case err := <-answers:
			failed++
			t.Errorf("before Shutdown: %v", err)
		}
	}
	close(leave)
	if err := v.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	asking.Wait()
	for range n - failed {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if st := v.Stats(); st.HTTP3.Requests != uint64(n) || st.HTTP3.Conns != uint64(n) {
		t.Errorf("Stats: %+v", st)
	}
}

// askOnce is one connection with one request.
func askOnce(addr string, size int, dial func() (*quic.Conn, error)) error {
	conn, err := dial()
	if err != nil {
		return fmt.Errorf("dialling: %w", err)
	}
	defer func() { _ = conn.CloseWithError(0, "") }()
	var rt http3.Transport
	defer rt.Close()
	r, err := http.NewRequest(http.MethodGet, "https://"+addr, nil)
	if err != nil {
		return err
	}
	resp, err := rt.NewClientConn(conn).RoundTrip(r)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	defer resp.Body.Close()
	got, err := io.Copy(io.Discard, resp.Body)
	if err != nil || got != int64(size) {
		return fmt.Errorf("%d bytes of %d: %w", got, size, err)
	}
	return nil
}
