// Quicflood sends datagrams at a rate, from many ports, to an address that it is told by a line on its standard input,
// until the next line; an empty one has it rest. It answers each line with how many it has sent so far. They are garbage,
// or what quic-go's client begins connections with, each of them another: it makes these before it is ready.
package main
