package weirtls

import (
	"fmt"
	"io"
	"net/netip"
)

// ErrTruncated is the reason when the peer has ended the connection without a close_notify: somebody on the way may have
// cut off what it sent (RFC 8446, section 6.1). It matches [io.ErrUnexpectedEOF].
var ErrTruncated = fmt.Errorf("weirtls: the peer has ended the connection without a close_notify: %w", io.ErrUnexpectedEOF)

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

	// KindTimeout is HandshakeTimeout. It matches weir.ErrTimeout.
	KindTimeout

	// KindNotTLS is a first record that is none. It matches tls.RecordHeaderError. A client that spoke HTTP has been
	// answered, in HTTP, that this is an HTTPS server.
	KindNotTLS

	// KindAlert is an alert of the peer, such as one that does not trust the certificate. It matches tls.AlertError.
	KindAlert

	// KindCertificate is a certificate of the peer that does not hold. It matches *tls.CertificateVerificationError.
	KindCertificate

	// KindGone is a peer that ended the connection, or reset it, in the middle: io.ErrUnexpectedEOF, or weir's error.
	KindGone

	// KindCrowded is one that gave way to others: see Handshakes.SetMax. It matches ErrCrowded.
	KindCrowded

	// KindPanic is a callback of Config.TLS that panicked, or, with Config.Blocking, ended its goroutine.
	KindPanic

	kinds int = iota
)

func (k Kind) String() string {
	if int(k) >= kinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return [...]string{
		KindProtocol: "protocol", KindTimeout: "timeout", KindNotTLS: "not_tls", KindAlert: "alert",
		KindCertificate: "certificate", KindGone: "gone", KindCrowded: "crowded", KindPanic: "panic",
	}[k]
}
