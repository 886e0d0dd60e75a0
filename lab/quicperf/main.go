//go:build unix

package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirnet/weir/lab/internal/meter"
	"github.com/weirnet/weir/lab/internal/socket"
)

// order is what the command line says.
type order struct {
	udp, role, do, addr   string
	conns, sockets, bytes int
	tick, window          time.Duration
}

// What is done, and what one of it is called, for people.
const (
	down  = "down"
	up    = "up"
	small = "small"
)

func parse() (o order) {
	flag.StringVar(&o.udp, "udp", socket.Net, "kind of the sockets: net or dgram")
	flag.StringVar(&o.role, "role", "both", "both, server or client")
	flag.StringVar(&o.do, "do", down, "down, up or small")
	flag.StringVar(&o.addr, "addr", "", "where the server of a client is")
	flag.IntVar(&o.conns, "conns", 1, "number of connections")
	flag.IntVar(&o.sockets, "sockets", 1, "sockets of the client, which the connections share")
	flag.IntVar(&o.bytes, "bytes", 0, "bytes that go up on each stream; 0: no end")
	flag.DurationVar(&o.tick, "tick", 0, "period of a timer on a weir loop; 0: none")
	flag.DurationVar(&o.window, "window", 0, "measure for so long, print and end; 0: answer lines")
	flag.Parse()
	if !slices.Contains([]string{down, up, small}, o.do) || o.conns < 1 || o.sockets < 1 {
		meter.Fail(fmt.Errorf("-do %s -conns %d -sockets %d: there is no such load", o.do, o.conns, o.sockets))
	}
	return o
}

func main() {
	o := parse()
	c := new(counts)
	if o.tick > 0 {
		c.loop = startLoop(o.tick)
	}
	var err error
	switch o.role {
	case "server":
		o.addr, err = serve(o, c)
	case "client":
		err = connect(o, c)
	case "both":
		if o.addr, err = serve(o, c); err == nil {
			err = connect(o, c)
		}
	default:
		err = fmt.Errorf("-role %s: not both, server or client", o.role)
	}
	if err != nil {
		meter.Fail(err)
	}
	if o.window > 0 {
		fmt.Println(o.report(c))
		return
	}
	meter.ServeAll(o.addr, c.answer)
}

// report measures once, for people.
func (o order) report(c *counts) string {
	time.Sleep(o.window / 3) // to get warm
	c.delays.Take()
	cpu, done, began := meter.ProcessorTime(), c.done.Load(), time.Now()
	time.Sleep(o.window)
	cpu, done = meter.ProcessorTime()-cpu, c.done.Load()-done
	n, rate, unit := float64(done)/1e6, "MB/s", "MB"
	if o.do == small {
		n, rate, unit = float64(done), "requests/s", "request"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %d connections: %.1f %s, %.1f µs of CPU a %s",
		o.udp, o.do, o.conns, n/time.Since(began).Seconds(), rate, float64(cpu.Microseconds())/n, unit)
	if n, p50, p99 := c.delays.Take(); n > 0 {
		fmt.Fprintf(&b, ", p50 %v, p99 %v", time.Duration(p50), time.Duration(p99))
	}
	return b.String()
}
