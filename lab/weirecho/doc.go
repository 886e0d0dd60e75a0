// Weirecho is a TCP echo server on one weir loop.
package main
