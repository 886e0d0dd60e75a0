// Package stream holds what a connection has still to write, and says what an errno of a stream means.
//
// A Queue is bytes in pooled memory, with files and messages that carry descriptors between them, in the order in
// which they go out. Nothing here knows a loop or a socket: the owner asks for the next part, writes it, and says
// how far it came.
package stream
