// Rawecho is a TCP echo server of a bare epoll loop: the least that a loop in Go can take. It has no bounds, no limits
// and no errors.
package main
