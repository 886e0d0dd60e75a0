// Package weir is a network event loop that no peer can starve.
//
// A [Loop] is one goroutine: the one that calls [Loop.Run]. It waits for its sockets, timers and posted
// functions, and calls their handlers one after the other, so handlers need no locks. What a source may
// do at a time is bounded by measured time ([Share]): while anything else waits, no socket holds the loop
// longer than its credit plus one callback, and a socket that is alone is not slowed.
//
//   - A handler is a struct of functions; those left nil do nothing.
//   - No call of this package calls a handler. Callbacks come from the loop, and never nest.
//   - Everything belongs to the loop's goroutine, unless its text says "any goroutine". Before Run, that
//     is the goroutine that called [New].
//   - What a callback is lent (a datagram and its payload) is valid until it returns.
//   - Other goroutines reach a loop by Post and PostContext, a socket by its [Sender], a connection by its
//     [ConnSender].
//   - Every queue that others fill has a limit with a default. A full one answers [ErrWouldBlock], or drops and
//     counts. What the program itself arms (timers, next-turn functions, tasks) has none.
//
// A turn of the loop has four phases: timers that were due when it began; one look at the poller, which
// waits when nothing is left to do; visits to the ready sources, each for its share, until all had one or
// a timer falls due; and the end of the turn: what is queued goes out, and callbacks that were put
// off (OnDrain, OnStop, OnError, OnClose) run.
//
// # The end
//
//	Close, or Run's context   at once: what is queued is dropped and counted; OnClose hears ErrClosed
//	Stop(grace)               deliver, send and run what is queued, then end; does not wait
//	Shutdown(ctx)             Stop, and wait for it
//	Config.StopWhenIdle       when there is nothing left to wait for
//
// A server stops well on a signal with
//
//	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer done()
//	context.AfterFunc(ctx, func() { loop.Stop(time.Second) })
//	err := loop.Run(context.Background())
//
// Stop has all connections deliver before it closes them, so that a relay can write what comes. What the peers send
// after that is lost to it: a relay that is to lose nothing closes its listener, lets its connections end, and stops then.
//
// # Streams
//
// A [Listener] accepts, [Loop.Dial] connects, and a [Conn] reads and writes, over TCP and unix sockets. OnData is
// lent what one read gave: a stream has no borders, so who parses messages keeps the beginning of one that is not
// whole. Write takes what fits and goes out after the callback, with all else that was written in it.
//
//	c.Write(b)                 n < len(b) with ErrWouldBlock: the peer is slow. Keep the rest, and c.Pause the
//	                           one that it came from, until OnDrain
//	OnEnd                      the peer has ended its direction; nil: Close
//	c.CloseWrite()             ends this one; when both have ended the connection closes
//	c.Close()                  when what is queued has gone out, with a deadline
//	c.Reset()                  now; the peer reads an error
//	OnStop                     a Stop is about to close it: a farewell still goes out
//	OnClose(c, err)            the last call; err says why, nil when it was asked for
//
// A listener and its connections are one source under the bound, in which they have equal parts; connections that were
// dialled or adopted are another; [Conn.SetLane] moves one to a [Lane] of the program's. [Group] runs a loop on each
// processor. [Loop.Watch] is for descriptors of the program's own.
//
// # UDP
//
// Send copies, and what is sent in a callback goes out together after it. Datagrams of one size to one
// destination go to the kernel as one and come from it as one (GSO, GRO); nobody sees that but [UDPStats], and
// it is off where the kernel, [Config], [UDPConfig] or the environment's WEIR_DISABLE (gso, gro, mmsg) say so.
// Other goroutines send by a [Sender].
//
// OnError hears of what went wrong without ending the socket, within a limit, and UDPStats counts all of it:
//
//	*OpError{Op: "send"}       a datagram that Send had taken was refused by the kernel; Addr tells whose.
//	                           Err is an errno, or a *SizeError with the path's MTU
//	*OpError{Op: "receive"}    the kernel had an error for the socket
//	*ICMPError                 the network said so of what was sent (UDPConfig.Reports)
//
// A socket that is adopted ([Loop.AdoptUDP]) or exported ([UDP.Export]) takes one datagram a call (with GRO:
// one train), so that it takes nothing away from the others that read it, until [UDP.Sole].
//
// # Limits
//
// Linux only, for now: elsewhere New answers [ErrUnsupported]. The bound governs who runs next, not how
// long one callback takes; a handler that blocks blocks its loop, and is reported.
package weir
