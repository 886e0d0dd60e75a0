// Package weirhttp serves one http.Handler over HTTP/1.1, HTTP/2 and HTTP/3 on one port number, and has a transport
// that speaks all three.
//
//	server := &weirhttp.Server{Addr: ":8443", TLSConfig: config, Handler: mux}
//	err := server.ListenAndServe() // until Shutdown
//
//	client := &http.Client{Transport: &weirhttp.Transport{HTTP3: weirhttp.HTTP3Prefer}}
//
// A [Server] is used as that of net/http, which serves HTTP/1.1 and 2 for it; HTTP/3 is quic-go's, over a socket of
// package dgram. A client that came by TCP is told by Alt-Svc that there is HTTP/3. The handler sees no difference but
// Request.Proto, and what http.ResponseController can do: EnableFullDuplex is an error over HTTP/3, where it is so anyway.
//
// What a peer can make a Server hold has limits with defaults: connections in all and of one source, handshakes at once,
// requests of a connection, the size of headers, what is received and not yet read. A source is an IPv4 address or an
// IPv6 /64, and one source alone never fills a limit that is for all. Above half of the handshakes of a limit a QUIC
// client has to show that its address is its own (Retry), before anything is kept of it.
//
// The size of a body and the time of a handler are for handlers to limit, as with net/http: http.MaxBytesHandler and
// http.TimeoutHandler do so over all three. There is no limit of either without.
//
// # Limits
//
//   - HTTP/3 has no 0-RTT: a request in it could be one of another day, sent once more by who recorded it.
//   - A connection of HTTP/3 is closed when no handler has been at work on it for IdleTimeout; that is the limit for
//     headers that come bit by bit, too. ReadHeaderTimeout is of HTTP/1.1; for HTTP/2 the same holds as for HTTP/3.
//   - A connection of HTTP/3 holds up to 6 MiB that its handlers have not read, all of a Server half a GiB beyond the
//     first 512 KiB of each, all of a source an eighth of that.
//   - There is no server push, no WebTransport and no plain-text HTTP: redirect from a net/http Server.
package weirhttp
