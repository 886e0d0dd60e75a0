// Nbiotls is a TLS echo server on one nbio loop, with nbio's TLS, a fork of an earlier crypto/tls: it knows no key
// exchange that withstands quantum computers, which makes its handshakes cheaper.
package main
