// Stdtlsecho is a TLS server of crypto/tls over package net, with a goroutine a connection.
package main
