// Package order is what a TLS server under test is told to do, the same for all of them.
package order
