package order

import (
	"crypto/tls"
	"flag"
	"fmt"
	"math"
	"slices"

	"github.com/weirnet/weir/lab/internal/meter"
)

// Order is what the command line says.
type Order struct {
	// File holds the certificate and its key, in PEM.
	File string

	// Do is Echo, Pour or Sink.
	Do string

	// Bytes is how many bytes Pour sends on each connection, and how many Sink receives until it answers with one.
	// It is math.MaxInt where there is no end.
	Bytes int

	// Tickets has the server send session tickets, as it does by default.
	Tickets bool
}

// What a server does with a connection.
const (
	Echo = "echo" // sends back what comes
	Pour = "pour" // sends
	Sink = "sink" // receives
)

// WriteBytes is the size of Pour's writes.
const WriteBytes = 16 << 10

// Parse reads the command line, of a program that does what is listed; the first is the default.
func Parse(does ...string) (o Order) {
	flag.StringVar(&o.File, "cert", "", "PEM file of certificate and key")
	flag.StringVar(&o.Do, "do", does[0], fmt.Sprint("one of ", does))
	flag.IntVar(&o.Bytes, "bytes", 0, "bytes to pour, or to sink until one is answered; 0: no end")
	flag.BoolVar(&o.Tickets, "tickets", true, "send session tickets")
	flag.Parse()
	if o.Bytes == 0 {
		o.Bytes = math.MaxInt
	}
	if slices.Contains(does, o.Do) {
		return o
	}
	meter.Fail(fmt.Errorf("-do %s: not one of %v", o.Do, does))
	return o
}

// Config is the order's for crypto/tls.
func (o Order) Config() *tls.Config {
	cert, err := tls.LoadX509KeyPair(o.File, o.File)
	if err != nil {
		meter.Fail(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: !o.Tickets}
}
