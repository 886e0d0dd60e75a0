// Weirhttp3 is an HTTP/3 server over a dgram.Conn, whose responses have no end. It counts the handshakes in progress, how
// many of them there may be (0: it has no limit), and what its socket says that the kernel has dropped.
package main
