package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirnet/weir"
)

const demoText = `Floods a socket with a slow handler and watches what becomes of a timer on the same loop.

A receiver takes each datagram in --handler of work. A child process floods it over loopback as fast as it
goes, or with --rate. A timer that is due every 20 ms runs beside it. This is done once for each bound:

  unbounded  reads the socket until it is empty; so while a flood lasts, nothing else runs
  count:N    takes N datagrams a turn, however long they take; other event loops do this, often with 32
  share      takes what it can in its share of time, measured; the default of weir

The table has, for each run: the ticks of the timer that were due and that fired; the lag; the datagrams
sent, delivered to the handler, dropped by the kernel as the socket's buffer was full, and left in that
buffer at the end.

With --net tcp the flood is one connection that is written to as fast as it goes, and --handler and count:N
are about reads. TCP makes a flood wait and drops nothing: in place of the datagrams the table has the
megabytes (of 1,000,000 bytes) that were read in a second. In the JSON that is read_mb_s; sent and
delivered are bytes there, all until the flood had ended.

Lag is how late the timer was for a tick. A late timer fires once for all the ticks it owes: each of them
counts as late as the first. Ticks that are still owed at the end count as late as the first of them is
then. So a timer that never fired was late by the whole run.`

const demoExample = `  weir demo
  weir demo --duration 500ms --bound unbounded,share
  weir demo --net tcp
  weir demo --rate 20000 --handler 20us --work 500us
  weir demo --json | jq '.runs[] | {bound, max: .lag_ms.max}'`

// demoConfig is what the flags say.
type demoConfig struct {
	net      network
	duration time.Duration // of a run
	handler  time.Duration // of work for a datagram, or a read
	work     time.Duration // of other work in a turn
	rate     int           // datagrams a second; 0: as fast as it goes
	bounds   []weir.Bound
	json     bool
}

func newDemo() *cobra.Command {
	cfg := demoConfig{
		net:      overUDP,
		duration: 2 * time.Second,
		handler:  2 * time.Millisecond,
		bounds:   []weir.Bound{weir.Unbounded(), weir.Count(32), weir.Share()},
	}
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Show what a flood does to a timer on the same loop, under each bound",
		Long:    demoText,
		Example: demoExample,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.net.checkRate(cfg.rate); err != nil {
				return err
			}
			return runDemo(cmd.OutOrStdout(), cmd.ErrOrStderr(), cfg)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(networkValue{&cfg.net}, "net", "what is flooded: udp, a socket, or tcp, a connection")
	f.Var(durationValue{&cfg.duration, 100 * time.Millisecond, 10 * time.Minute}, "duration", "length of each run, from 100ms to 10m")
	f.Var(durationValue{&cfg.handler, 0, time.Second}, "handler", "work for each datagram, with tcp each read, up to 1s")
	f.Var(durationValue{&cfg.work, 0, time.Second}, "work", "other work in each turn of the loop, up to 1s")
	f.Var(rateValue{&cfg.rate}, "rate", "datagrams per second, up to 10000000; 0: as fast as it goes, as always with tcp")
	f.Var(boundsValue{&cfg.bounds, new(bool)}, "bound", "bounds to run under: share, unbounded, count:N; can be given again")
	f.BoolVar(&cfg.json, "json", false, "print JSON instead of the table")
	return cmd
}

// runDemo runs one flood for each bound and prints what was measured, also when it ends early.
func runDemo(stdout, stderr io.Writer, cfg demoConfig) error {
	if err := openRuntimePoller(); err != nil {
		return err
	}
	ctx, done := catchSignals()
	defer done()
	rows, err := runAll(ctx, stderr, cfg)
	report := printTable
	if cfg.json {
		report = printJSON
	}
	return errors.Join(err, report(stdout, cfg, rows))
}

// runAll returns the rows of the runs that were made, the last one cut short if the context ended it.
func runAll(ctx context.Context, stderr io.Writer, cfg demoConfig) ([]row, error) {
	p := newProgress(stderr, len(cfg.bounds), cfg.duration)
	var rows []row
	for _, b := range cfg.bounds {
		if ctx.Err() != nil {
			break
		}
		r, err := runOne(ctx, cfg, b, p)
		if err != nil {
			return rows, err
		}
		if r.TicksDue > 0 {
			rows = append(rows, r)
		}
	}
	if ctx.Err() != nil {
		return rows, context.Cause(ctx)
	}
	return rows, nil
}

// catchSignals returns a context that ends with the first SIGINT or SIGTERM, of which its cause tells. A
// second one ends the process at once.
func catchSignals() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer signal.Stop(signals)
		select {
		case s := <-signals:
			cancel(interrupted{s.(syscall.Signal)})
		case <-over:
			return
		}
		select {
		case s := <-signals: // not left to the system: it may be told to ignore them, as for what a script starts by &
			os.Exit(128 + int(s.(syscall.Signal)))
		case <-over:
		}
	}()
	return ctx, func() { cancel(nil); close(over); <-ended }
}
