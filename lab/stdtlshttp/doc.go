// Stdtlshttp is net/http's server with TLS, for handshakes.
package main
