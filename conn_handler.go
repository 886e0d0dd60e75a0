package weir

// ConnHandler is what a connection calls. Functions left nil do what is said there.
type ConnHandler struct {
	// OnOpen is called first, when the connection is there.
	OnOpen func(c *Conn)

	// OnData is called with bytes that were read, up to 64 KiB. b is lent until it returns, and may be written to. It is
	// empty where Conn.Again asked for the call.
	OnData func(c *Conn, b []byte)

	// OnFiles is called, before OnData, with the descriptors that came with its bytes over a unix connection:
	// between what was sent before their message and the end of b lies that message. What is not taken of f is closed
	// when it returns. Nil closes all.
	OnFiles func(c *Conn, f *Files)

	// OnDrain is called when, after a Write answered ErrWouldBlock or an Enqueue left no room, half of the write buffer or
	// less waits.
	OnDrain func(c *Conn)

	// OnEnd is called when the peer has ended its direction: no bytes follow. Writing goes on, until CloseWrite or
	// Close. Nil closes the connection when what is queued has gone out.
	OnEnd func(c *Conn)

	// OnTimeout is called when a time limit is over; the connection stays as it is, and the limit, unless it was the
	// deadline, begins again. Nil ends the connection, with an error that matches ErrTimeout.
	OnTimeout func(c *Conn, what Timeout)

	// OnStop is called once, when a Stop of the loop has nothing left to deliver, on any connection that is open, and is
	// about to close this one: what it writes goes out before, such as the farewell of a protocol, behind all that was
	// written before, by the Sender, too. Where a Write in it is refused, OnDrain comes first. It is not called where a
	// connection ends in another way, as by Close, by its peer, or because the grace is over.
	OnStop func(c *Conn)

	// OnClose is the last call: nil after Close, or when both directions had ended, ErrClosed when the loop ended, else
	// an *OpError with what ended the connection, such as ECONNRESET where the peer did, also where that came to pass
	// while Close waited. It is the only call where the connection never came about.
	OnClose func(c *Conn, err error)
}
