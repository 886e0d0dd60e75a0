// Package batch holds datagrams on their way between a socket and its user: queues in pooled memory, and
// the flush of a send queue in as few system calls as the kernel allows.
//
// Nothing here knows a loop or a goroutine: the owner calls, and gives the kernel, the descriptor and the
// scratch batch each time.
package batch
