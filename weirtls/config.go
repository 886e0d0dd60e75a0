package weirtls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"time"
)

// Config is how TLS is begun. In every field zero stands for the default, and a negative number for none.
type Config struct {
	// TLS is crypto/tls's own, and used as it is: it must not be changed any more. A server needs one with a certificate,
	// or a callback that has some. For a client nil is the default; a ServerName that is empty is, of Dial, the host
	// that is dialled, and of Client and StartTLS an error.
	TLS *tls.Config

	// HandshakeTimeout is how long a handshake may take in all, from when the connection is there, the wait for its turn
	// included; while the connection is paused it does not count, and begins again after. Default: 10 s.
	HandshakeTimeout time.Duration

	// CloseTimeout is how long Close waits for a peer that takes nothing of what is queued, or, once it has, does not end
	// its own direction, in TLS or below. Once both have ended in TLS, ConnConfig.CloseTimeout of the connection below
	// limits what is left to be sent. Where the peer takes what is queued bit by bit, it is up to twice that. Default: 10 s.
	CloseTimeout time.Duration

	// SenderBufferBytes is how much a Sender holds that the loop has not encrypted yet. Default: 1 MiB.
	SenderBufferBytes int

	// Blocking runs each handshake on a goroutine of its own, so that the callbacks of TLS may block, as one that asks a
	// remote signer, or lock their thread. No method of Conn may be called there. Their contexts end with the
	// connection, also where the peer ends it. Such a handshake's time is shared out by Go's scheduler, not by the
	// loop; the count of [Handshakes] limits it all the same. What crypto/tls calls after the handshake, such as a
	// ClientSessionCache with a ticket, is on the loop's goroutine in any case.
	Blocking bool
}

const (
	defaultHandshakeTimeout = 10 * time.Second
	defaultCloseTimeout     = 10 * time.Second
	defaultSenderBytes      = 1 << 20
)

// Role is a side of a handshake.
type Role uint8

const (
	// AsServer is the side that shows a certificate.
	AsServer Role = iota + 1

	// AsClient is the side that speaks first.
	AsClient
)

func (r Role) String() string {
	switch r {
	case AsServer:
		return "server"
	case AsClient:
		return "client"
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// settings is a Config with its defaults, shared by all connections that are begun with it.
type settings struct {
	role             Role
	tls              *tls.Config
	handshakeTimeout time.Duration // 0: none
	closeTimeout     time.Duration // 0: none
	senderBytes      int
	blocking         bool
	handler          Handler
}

var (
	errNoCertificate = errors.New("weirtls: Config.TLS has neither a certificate nor GetCertificate nor GetConfigForClient")
	errNoName        = errors.New("weirtls: Config.TLS has neither ServerName nor InsecureSkipVerify")
	errRenegotiation = errors.New("weirtls: Config.TLS.Renegotiation is not RenegotiateNever, which is all that is supported")
)

// resolve fills in the defaults and refuses what makes no sense.
func (c Config) resolve(role Role, h Handler) (*settings, error) {
	s := &settings{
		role: role, tls: c.TLS, blocking: c.Blocking, handler: h,
		handshakeTimeout: c.HandshakeTimeout, closeTimeout: c.CloseTimeout, senderBytes: c.SenderBufferBytes,
	}
	if s.tls == nil {
		s.tls = &tls.Config{}
	}
	switch {
	case role != AsServer && role != AsClient:
		return nil, fmt.Errorf("weirtls: %v is neither AsServer nor AsClient", role)
	case s.tls.Renegotiation != tls.RenegotiateNever:
		return nil, errRenegotiation
	case role == AsServer && len(s.tls.Certificates) == 0 && s.tls.GetCertificate == nil && s.tls.GetConfigForClient == nil:
		return nil, errNoCertificate
	case role == AsClient && s.tls.ServerName == "" && !s.tls.InsecureSkipVerify:
		return nil, errNoName
	}
	s.handshakeTimeout = orDefault(s.handshakeTimeout, defaultHandshakeTimeout)
	s.closeTimeout = orDefault(s.closeTimeout, defaultCloseTimeout)
	switch {
	case s.senderBytes == 0:
		s.senderBytes = defaultSenderBytes
	case s.senderBytes < 0:
		s.senderBytes = math.MaxInt
	}
	return s, nil
}

// orDefault is 0 for none.
func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return max(d, 0)
}
