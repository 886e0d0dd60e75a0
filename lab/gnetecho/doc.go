// Gnetecho is a TCP echo server on one gnet loop.
package main
