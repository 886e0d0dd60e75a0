package weirhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// errHandshakeLate says that a request did not wait for the handshake to end.
var errHandshakeLate = errors.New("the QUIC handshake takes longer than FallbackDelay")

// What an origin's HTTP/3 rests for when a dial has failed, twice as long each time.
const (
	firstRest = time.Minute
	longRest  = time.Hour
)

// startDial begins a handshake with an origin, for as many requests as want it. mu is held.
func (t *Transport) startDial(o *origin) *dialing {
	d := &dialing{done: make(chan struct{})}
	t.stats.Dials++
	host, port, _ := net.SplitHostPort(o.key)
	at := o.alt
	t.work.Go(func() {
		defer close(d.done)
		ctx, cancel := context.WithTimeout(t.ctx, t.HandshakeTimeout)
		defer cancel()
		conn, err := t.dialQUIC(ctx, host, cmp.Or(at.host, host), cmp.Or(at.port, port))
		if err != nil {
			err = fmt.Errorf("weirhttp: HTTP/3 with %s: %w", o.key, err)
		}
		d.err = t.dialled(o, conn, err)
	})
	return d
}

// dialled takes what a dial came to.
func (t *Transport) dialled(o *origin, conn *quic.Conn, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.dial = nil
	if err != nil {
		t.stats.DialsFailed++
		o.notBefore = t.now().Add(min(firstRest<<min(o.failures, 10), longRest))
		o.failures++
		return err
	}
	o.failures, o.notBefore = 0, time.Time{}
	c := &client{origin: o, conn: conn, h3: t.h3.NewClientConn(conn)}
	if t.closed {
		c.close()
		return ErrTransportClosed
	}
	o.drop()
	o.client = c
	c.requests++ // starts the idle timer by its release
	t.work.Go(func() { t.release(c) })
	return nil
}

// dialQUIC does a handshake with host, whose certificate it must be, at one of the addresses of where. They are tried one
// after the other, each a little after the one before, IPv6 and IPv4 in turns (RFC 8305).
func (t *Transport) dialQUIC(ctx context.Context, host, where, port string) (*quic.Conn, error) {
	transport, err := t.socket()
	if err != nil {
		return nil, err
	}
	addrs, err := resolve(ctx, where, port)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn *quic.Conn
		err  error
	}
	results := make(chan result)
	dial := func(addr netip.AddrPort) {
		conn, err := t.handshake(ctx, transport, host, addr)
		select {
		case results <- result{conn, err}:
		case <-ctx.Done():
			if conn != nil {
				_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
			}
		}
	}
	var failed []error
	next := time.NewTimer(0)
	defer next.Stop()
	for begun := 0; ; {
		select {
		case <-next.C:
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			failed = append(failed, r.err)
			if len(failed) == len(addrs) {
				return nil, errors.Join(failed...)
			}
		case <-ctx.Done():
			return nil, errors.Join(append(failed, context.Cause(ctx))...)
		}
		if begun < len(addrs) {
			addr := addrs[begun]
			t.work.Go(func() { dial(addr) })
			begun++
			next.Reset(attemptDelay)
		}
	}
}

// attemptDelay is the Connection Attempt Delay of RFC 8305 section 5.
const attemptDelay = 250 * time.Millisecond

func (t *Transport) handshake(ctx context.Context, transport *quic.Transport, host string, addr netip.AddrPort) (*quic.Conn, error) {
	tlsConfig := t.TLSClientConfig.Clone()
	tlsConfig.NextProtos = []string{http3.NextProtoH3}
	tlsConfig.ServerName = cmp.Or(tlsConfig.ServerName, host)
	return transport.Dial(ctx, net.UDPAddrFromAddrPort(addr), tlsConfig, &quic.Config{
		HandshakeIdleTimeout: t.HandshakeTimeout,
		MaxIdleTimeout:       30 * time.Second,
		KeepAlivePeriod:      10 * time.Second, // a response may take its time; who has no requests is closed by IdleTimeout
		MaxIncomingStreams:   -1,
	})
}

// maxAddrs is how many addresses of a name are tried.
const maxAddrs = 8

// resolve finds the addresses of a host, those of the two families in turns, as the resolver orders them.
func resolve(ctx context.Context, host, port string) ([]netip.AddrPort, error) {
	number, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var families [2][]netip.AddrPort
	first := 0
	for i, ip := range ips {
		ip = ip.Unmap()
		family := 0
		if ip.Is4() {
			family = 1
		}
		if i == 0 {
			first = family
		}
		families[family] = append(families[family], netip.AddrPortFrom(ip, uint16(number)))
	}
	return take(maxAddrs, families[first], families[1-first]), nil
}

// take is up to n of two lists, in turns.
func take[T any](n int, a, b []T) (out []T) {
	for len(out) < n && len(a)+len(b) > 0 {
		if len(a) > 0 {
			out = append(out, a[0])
			a = a[1:]
		}
		a, b = b, a
	}
	return slices.Clip(out)
}
