//go:build unix

package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/weirnet/weir"
	"github.com/weirnet/weir/lab/internal/meter"
	"github.com/weirnet/weir/lab/internal/socket"
)

// counts is what the program tells of.
type counts struct {
	done    atomic.Uint64 // bytes received, or requests answered
	delays  meter.Delays  // of requests
	sockets []socket.Conn // set before the program is ready
	loop    *loop         // nil: none

	mu    sync.Mutex
	conns []*quic.Conn // guarded by mu
}

func (c *counts) opened(conn *quic.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
}

// lost is how many packets of this end quic-go holds for lost. It takes back what it was wrong about.
func (c *counts) lost() (n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		n += conn.ConnectionStats().PacketsLost
	}
	return n
}

func (c *counts) answer() []uint64 {
	var drops, told uint64
	for _, s := range c.sockets {
		n, err := socket.Drops(s)
		if err != nil {
			meter.Fail(err)
		}
		drops += n
		told += socket.Told(s)
	}
	_, p50, p99 := c.delays.Take()
	n := []uint64{c.done.Load(), uint64(p50), uint64(p99), drops, told, c.lost(), 0, 0}
	if c.loop != nil {
		n[6] = c.loop.ticks.Load()
		lag := c.loop.Stats().TimerLag
		n[7] = uint64(lag.Quantile(0.99))
	}
	return n
}

// loop has nothing to do but to keep time.
type loop struct {
	*weir.Loop
	ticks atomic.Uint64
}

// startLoop returns a loop that runs until the program ends.
func startLoop(tick time.Duration) *loop {
	running := make(chan *loop)
	go func() {
		l, err := weir.New(weir.Config{})
		if err != nil {
			meter.Fail(err)
		}
		mine := &loop{Loop: l}
		l.Every(tick, func() { mine.ticks.Add(1) })
		running <- mine
		if err := l.Run(context.Background()); err != nil {
			meter.Fail(err)
		}
	}()
	return <-running
}
