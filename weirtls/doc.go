// Package weirtls is TLS on a loop of package weir, by the standard crypto/tls, unforked: what a *tls.Config says is so
// here, too (SNI, ALPN, client certificates, resumption, key logs, TLS 1.2 and 1.3).
//
// [Listen] and [Dial] begin with TLS; [Server] and [Client] begin it on an open connection, and [StartTLS] in the middle
// of one's life, with what was read already. A [Handler] is called on the loop's goroutine, as that of a weir.Conn.
//
// A handshake is a coroutine that the loop resumes when a whole record of the peer is there: a peer that stalls costs
// memory and nothing else, and after the handshake nothing is left of it, neither goroutine nor stack. All handshakes of
// a loop are one lane under its bound, first come first served, so that a storm of them leaves connections that are open
// their share of the time; see [Handshakes] for the limit and the counts.
//
// # Limits
//
//   - A Config is asked about on the loop's goroutine: GetCertificate, VerifyConnection and the others must neither
//     block nor lock the goroutine to its thread. [Config.Blocking] is for those that do.
//   - Renegotiation, which is of TLS 1.2 and off by default, is not supported: Config.TLS.Renegotiation must be
//     tls.RenegotiateNever.
//   - A record that was received needs a buffer, which crypto/tls keeps as large as it was needed: a connection that
//     has received a lot takes 40 KB at rest, one that has not 8 KB.
//   - There is no early data (0-RTT) and no kernel TLS.
package weirtls
