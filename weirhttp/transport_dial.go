package weirhttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const (
	// attemptDelay is the Connection Attempt Delay of RFC 8305 section 5.
	attemptDelay = 250 * time.Millisecond

	// keepAlive is how often a quiet connection is looked at: a response may take its time, and a peer that is gone is to be
	// noticed. IdleTimeout closes what nobody uses.
	keepAlive = 10 * time.Second
)

var errDialTimeout = errors.New("no answer within HandshakeTimeout")

// dialError says which origin there is no HTTP/3 with. url.Error, and so the program, asks it for a timeout.
type dialError struct {
	with originKey
	err  error
}

func (e *dialError) Error() string { return fmt.Sprintf("weirhttp: HTTP/3 with %s: %v", e.with, e.err) }
func (e *dialError) Unwrap() error { return e.err }

func (e *dialError) Timeout() bool {
	_, idle := errors.AsType[*quic.IdleTimeoutError](e.err)
	_, handshake := errors.AsType[*quic.HandshakeTimeoutError](e.err)
	return idle || handshake || errors.Is(e.err, errDialTimeout)
}

// dialQUIC does a handshake with a server that has a certificate for host, at one of target's addresses. They are tried one
// after the other, each a little after the one before, or when that has failed (RFC 8305).
func (c *transportCore) dialQUIC(ctx context.Context, host string, target originKey) (*quic.Conn, error) {
	transport, err := c.socket()
	if err != nil {
		return nil, err
	}
	addrs, err := resolve(ctx, target)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := attempts{results: make(chan attempt), ended: ctx.Done()}
	next := time.NewTimer(0)
	defer next.Stop()
	for begun := 0; ; {
		select {
		case <-next.C:
			if begun < len(addrs) {
				addr := addrs[begun]
				c.work.Go(func() { a.deliver(c.handshakeWith(ctx, transport, host, addr)) })
				begun++
				next.Reset(attemptDelay)
			}
		case r := <-a.results:
			if r.err == nil {
				return r.conn, nil
			}
			if a.failed = append(a.failed, r.err); len(a.failed) == len(addrs) {
				return nil, errors.Join(a.failed...)
			}
			next.Reset(0)
		case <-ctx.Done():
			return nil, errors.Join(append(a.failed, context.Cause(ctx))...)
		}
	}
}

// attempts are the handshakes of a dial. The first that succeeds is taken, what comes later is closed.
type attempts struct {
	results chan attempt
	ended   <-chan struct{}
	failed  []error // of the goroutine that dials
}

type attempt struct {
	conn *quic.Conn
	err  error
}

func (a *attempts) deliver(conn *quic.Conn, err error) {
	select {
	case a.results <- attempt{conn, err}:
	case <-a.ended:
		if conn != nil {
			_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		}
	}
}

func (c *transportCore) handshakeWith(ctx context.Context, transport *quic.Transport, host string, addr netip.AddrPort) (*quic.Conn, error) {
	config := c.tls.Clone()
	config.NextProtos = []string{http3.NextProtoH3}
	config.ServerName = cmp.Or(config.ServerName, host)
	config.MinVersion = max(config.MinVersion, tls.VersionTLS13)
	conn, err := transport.Dial(ctx, net.UDPAddrFromAddrPort(addr), config, &quic.Config{
		HandshakeIdleTimeout:  c.handshake,
		MaxIdleTimeout:        3 * keepAlive,
		KeepAlivePeriod:       keepAlive,
		MaxIncomingStreams:    -1,
		MaxIncomingUniStreams: 16, // control and QPACK take three
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return conn, nil
}
