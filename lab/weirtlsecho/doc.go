// Weirtlsecho is a TLS server on one weir loop, of package weirtls. Its answers end with the number of handshakes that
// are done, and that of the ticks of its timer, with -tick.
package main
