//go:build unix

package main

import (
	"context"
	"sync/atomic"
	"time"

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
	n := []uint64{c.done.Load(), uint64(p50), uint64(p99), drops, told, 0, 0}
	if c.loop != nil {
		n[5] = c.loop.ticks.Load()
		lag := c.loop.Stats().TimerLag
		n[6] = uint64(lag.Quantile(0.99))
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
