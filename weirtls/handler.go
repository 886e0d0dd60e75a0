package weirtls

import (
	"crypto/tls"

	"github.com/weirnet/weir"
)

// Handler is what a connection calls, on its loop's goroutine. Functions left nil do what is said there. No call of a
// method calls one of them.
type Handler struct {
	// OnOpen is called first, when the connection is there and its handshake is to come; not where the connection was
	// open when TLS was begun on it. One that is paused here begins its handshake when it is resumed.
	OnOpen func(c *Conn)

	// OnHandshake is called when the handshake is done: from here on Write takes something. A client over TLS 1.3 is done
	// before the server has seen its certificate; that it is refused OnClose tells, by the server's alert.
	OnHandshake func(c *Conn, state tls.ConnectionState)

	// OnData is called with bytes that were decrypted, of one or more records, up to 80 KiB. b is lent until it returns,
	// and may be written to.
	OnData func(c *Conn, b []byte)

	// OnDrain is called when, after a Write answered ErrWouldBlock, there is room again: half of the write buffer or
	// less waits.
	OnDrain func(c *Conn)

	// OnEnd is called when the peer has ended its direction as TLS wants it, by a close_notify: no bytes follow, and none
	// were lost. Over TLS 1.3 writing goes on, until CloseWrite or Close; over TLS 1.2, which has no half-closed
	// connections, the connection is closed after it. Nil closes it when what is queued has gone out.
	//
	// A peer that ends the connection without a close_notify is told by OnClose, with ErrTruncated.
	OnEnd func(c *Conn)

	// OnTimeout is as weir's, of the time limits of the connection below. Nil ends the connection.
	OnTimeout func(c *Conn, what weir.Timeout)

	// OnStop is as weir's: a Stop of the loop is about to close the connection, whose handshake is done.
	OnStop func(c *Conn)

	// OnClose is the last call: nil after Close, a Stop, or when both directions had ended; a *HandshakeError where the
	// handshake failed; a *weir.OpError of ErrTruncated, of the peer's alert, which matches tls.AlertError, or of what was wrong
	// with its records; or else what weir tells.
	OnClose func(c *Conn, err error)
}

// ListenerHandler is what a listener and its connections call. Functions left nil do nothing.
type ListenerHandler struct {
	// Conn is for the connections.
	Conn Handler

	// OnError and OnClose are as weir's. A handshake that failed is not told here but by its connection's OnClose.
	OnError func(ln *weir.Listener, err error)
	OnClose func(ln *weir.Listener, err error)
}
