// Tlsload makes TLS connections, by crypto/tls with a goroutine each. It answers each line on its standard input with
// numbers that depend on what it was told to do:
//
//   - handshakes: so many at a time, each connection closed after; how many are done, and how many of them resumed.
//   - hold: nothing after the handshake; how many there are. It is ready when all are there.
//   - down and up: receive or send as fast as that goes; the bytes so far. With -bytes each connection stops after so
//     many, and it is ready when all have.
//   - echo: send a message on a grid and wait until it has come back; how many there were since the line before, and
//     the median and the 99th percentile of how long after its time each was back, in nanoseconds.
//   - storm: connect, and at the first line begin all handshakes at once; how many came about, and how long they all
//     took, in nanoseconds.
package main
