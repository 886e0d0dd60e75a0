// Stdecho is a TCP echo server of package net, with a goroutine a connection.
package main
