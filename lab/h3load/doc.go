// H3load has responses without an end come by HTTP/3, on one connection each, by quic-go over net. It is ready when all
// have begun, ends with an error when one ends, and counts the bytes.
package main
