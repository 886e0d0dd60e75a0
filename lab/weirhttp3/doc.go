// Weirhttp3 is a server of package weirhttp, whose responses have no end. It counts the handshakes in progress, how
// many of them there may be, and what its socket says that the kernel has dropped.
package main
