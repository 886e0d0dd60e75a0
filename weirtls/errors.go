package weirtls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"reflect"
)

// ErrTruncated is the reason when the peer has ended the connection without a close_notify: somebody on the way may have
// cut off what it sent (RFC 8446, section 6.1). It matches [io.ErrUnexpectedEOF].
var ErrTruncated = fmt.Errorf("weirtls: the peer has ended the connection without a close_notify: %w", io.ErrUnexpectedEOF)

// ErrCrowded is the reason when a handshake gave way to others: see Handshakes.SetMax.
var ErrCrowded = errors.New("weirtls: too many handshakes, and this one has waited longest for its peer")

// HandshakeError is why a handshake came to nothing.
type HandshakeError struct {
	Kind Kind
	Role Role           // the own one
	Addr netip.AddrPort // the peer's; zero over a unix socket
	Err  error
	// Stack is where a callback of Config.TLS panicked, nil for other kinds.
	Stack []byte
}

func (e *HandshakeError) Error() string {
	if !e.Addr.IsValid() {
		return fmt.Sprintf("weirtls: handshake as %v: %v", e.Role, e.Err)
	}
	return fmt.Sprintf("weirtls: handshake as %v with %v: %v", e.Role, e.Addr, e.Err)
}

func (e *HandshakeError) Unwrap() error { return e.Err }

// Kind is a kind of failed handshakes, which are counted by it.
type Kind uint8

const (
	// KindProtocol is all that has no kind of its own: the peers have no version, cipher suite or protocol in common,
	// messages that make no sense, an error of a callback.
	KindProtocol Kind = iota

	// KindTimeout is HandshakeTimeout, or a time limit of the connection below. It matches weir.ErrTimeout.
	KindTimeout

	// KindNotTLS is a first record that is none. It matches tls.RecordHeaderError. A client that spoke HTTP has been
	// answered, in HTTP, that this is an HTTPS server.
	KindNotTLS

	// KindAlert is an alert of the peer, such as one that does not trust the certificate. It matches tls.AlertError.
	KindAlert

	// KindCertificate is a certificate of the peer that does not hold. It matches *tls.CertificateVerificationError.
	KindCertificate

	// KindGone is a peer that ended the connection, with a close_notify or without, or reset it, in the middle:
	// io.ErrUnexpectedEOF, or weir's error.
	KindGone

	// KindCrowded is one that gave way to others: see Handshakes.SetMax. It matches ErrCrowded.
	KindCrowded

	// KindPanic is a callback of Config.TLS that panicked, or, with Config.Blocking, ended its goroutine.
	KindPanic

	// Kinds is how many there are.
	Kinds int = iota
)

func (k Kind) String() string {
	if int(k) >= Kinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return [...]string{
		KindProtocol: "protocol", KindTimeout: "timeout", KindNotTLS: "not_tls", KindAlert: "alert",
		KindCertificate: "certificate", KindGone: "gone", KindCrowded: "crowded", KindPanic: "panic",
	}[k]
}

// handshakeError tells of a handshake that failed, and counts it.
func (c *Conn) handshakeError(k Kind, why error) error {
	c.handshakes.counts.failed[k].Add(1)
	e := &HandshakeError{Kind: k, Role: c.set.role, Addr: c.raw.RemoteAddr(), Err: why}
	if h := c.handshake; h != nil && k == KindPanic {
		e.Stack = h.stack
	}
	return e
}

// kindOf tells what an error of crypto/tls is about, and gives it the form in which it is told.
func (c *Conn) kindOf(err error) (Kind, error) {
	if h, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return KindNotTLS, c.notTLS(h)
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" {
		return KindAlert, plainAlert(err)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return KindCertificate, err
	}
	if err == io.EOF || c.wire.told && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return KindGone, fmt.Errorf("the peer has ended the connection: %w", io.ErrUnexpectedEOF)
	}
	return KindProtocol, err
}

// notTLS says what a first record is that is none.
func (c *Conn) notTLS(h tls.RecordHeaderError) error {
	h.Conn = nil // it is ours
	switch {
	case c.set.role == AsServer && looksLikeHTTP(h.RecordHeader):
		return fmt.Errorf("the client sent an HTTP request to a TLS server: %w", h)
	case c.set.role == AsClient && string(h.RecordHeader[:]) == "HTTP/":
		return fmt.Errorf("the server gave an HTTP response to a TLS client: %w", h)
	}
	return h
}

// looksLikeHTTP tells whether a first record begins as requests do, as net/http asks.
func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}

// answerHTTP answers who spoke HTTP to a TLS server as net/http does.
func (c *Conn) answerHTTP(why error) {
	if h, ok := errors.AsType[tls.RecordHeaderError](why); ok && c.set.role == AsServer && looksLikeHTTP(h.RecordHeader) {
		_ = c.raw.Enqueue([]byte("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"))
	}
}

// plainAlert gives an alert, which crypto/tls has a type of its own for that nobody else can name, that of
// tls.AlertError.
func plainAlert(err error) error {
	e, ok := errors.AsType[*net.OpError](err)
	if !ok || e.Err == nil {
		return err
	}
	if v := reflect.ValueOf(e.Err); v.Kind() == reflect.Uint8 {
		return &net.OpError{Op: e.Op, Net: e.Net, Err: tls.AlertError(v.Uint())}
	}
	return err
}
