package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirnet/weir"
)

const floodText = `Floods an address, by UDP datagrams or with one TCP connection; weir demo starts it.

It opens its socket, writes "ready", waits for a line on stdin, and floods until --duration is over or stdin
ends, whichever is first. Then it writes {"sent": N}: datagrams,
over TCP bytes.`

const (
	datagramBytes = 64
	pieceBytes    = 64 << 10 // of what is written to a connection
)

// floodConfig is what the arguments say.
type floodConfig struct {
	net      network
	target   netip.AddrPort
	rate     int
	duration time.Duration
}

// floodReport is what a flood says at its end.
type floodReport struct {
	Sent uint64 `json:"sent"`
}

func newFlood() *cobra.Command {
	cfg := floodConfig{net: overUDP, duration: time.Second}
	cmd := &cobra.Command{
		Use:    "flood address:port",
		Short:  "Flood an address",
		Long:   floodText,
		Hidden: true,
		Args:   oneTarget(&cfg.target),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.net.checkRate(cfg.rate); err != nil {
				return err
			}
			return runFlood(cmd.InOrStdin(), cmd.OutOrStdout(), cfg)
		},
	}
	f := cmd.Flags()
	f.Var(networkValue{&cfg.net}, "net", "udp or tcp")
	f.Var(rateValue{&cfg.rate}, "rate", "datagrams per second, up to 10000000; 0: as fast as it goes")
	f.Var(durationValue{&cfg.duration, time.Millisecond, time.Hour}, "duration", "how long, up to 1h")
	return cmd
}

// oneTarget takes the argument, an address with a port above 0.
func oneTarget(target *netip.AddrPort) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return wrong("%s takes one address with a port, but got %d arguments", cmd.CommandPath(), len(args))
		}
		to, err := netip.ParseAddrPort(args[0])
		if err != nil || to.Port() == 0 {
			return wrong("address %q: an IP address with a port above 0 is allowed", args[0])
		}
		*target = to
		return nil
	}
}

// runFlood is the child's side of the demo.
func runFlood(stdin io.Reader, stdout io.Writer, cfg floodConfig) error {
	// A terminal sends its signals to the whole process group. It is the parent that ends the flood, and
	// stdin ends if the parent dies.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	s, err := newSender(cfg)
	if err != nil {
		return err
	}
	defer s.loop.Close()
	if _, err := fmt.Fprintln(stdout, "ready"); err != nil {
		return err
	}
	orders := bufio.NewReader(stdin)
	switch _, err := orders.ReadString('\n'); {
	case err == nil:
		if err := s.run(cfg.duration, orders); err != nil {
			return err
		}
	case !errors.Is(err, io.EOF):
		return err
	}
	return json.NewEncoder(stdout).Encode(floodReport{Sent: s.sent()})
}

// sender sends datagrams by an absolute schedule, whatever becomes of them, or writes to a connection what it takes.
type sender struct {
	loop    *weir.Loop
	socket  *weir.UDP  // nil over TCP
	conn    *weir.Conn // nil over UDP
	broken  error      // of the connection
	task    *weir.Task
	rate    int
	began   time.Time
	queued  int64 // of those that the schedule asks for
	payload [datagramBytes]byte
}

const (
	burstEvery = time.Millisecond
	burst      = 64 // what the socket sends with one system call
)

func newSender(cfg floodConfig) (*sender, error) {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		return nil, err
	}
	s := &sender{loop: loop, rate: cfg.rate}
	if err := s.open(cfg); err != nil {
		_ = loop.Close()
		return nil, err
	}
	return s, nil
}

func (s *sender) open(cfg floodConfig) (err error) {
	if cfg.net == overTCP {
		s.conn, err = s.loop.DialTCP(netip.AddrPort{}, cfg.target, weir.ConnConfig{}, weir.ConnHandler{
			OnDrain: func(*weir.Conn) { s.task.Again() },
			OnClose: func(_ *weir.Conn, err error) { s.broken = err; _ = s.loop.Close() },
		})
		return err
	}
	// OnError is left out: that nobody listens, or that the kernel refuses, does not stop a flood.
	s.socket, err = s.loop.DialUDP(netip.AddrPort{}, cfg.target, weir.UDPConfig{}, weir.UDPHandler{
		OnDrain: func(*weir.UDP) { s.task.Again() },
	})
	return err
}

// sent is what the kernel has taken.
func (s *sender) sent() uint64 {
	if s.conn != nil {
		return s.conn.Stats().Written
	}
	return s.socket.Stats().Sent
}

// run floods for d, or until stdin ends.
func (s *sender) run(d time.Duration, stdin io.Reader) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	go func() { // it lives as long as the process
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	s.began = time.Now()
	step := s.step
	if s.conn != nil {
		step = s.writer()
	}
	s.task = s.loop.Work(step)
	if s.rate > 0 {
		s.loop.Every(burstEvery, s.task.Again)
	}
	if err := s.loop.Run(ctx); ctx.Err() == nil {
		return cmp.Or(err, s.broken)
	}
	return nil
}

// writer is the step of a connection.
func (s *sender) writer() func() (more bool) {
	piece := make([]byte, pieceBytes)
	return func() bool {
		_, err := s.conn.Write(piece)
		return err == nil // else OnDrain goes on, or OnClose tells
	}
}

// step queues some of what is owed, and tells whether more is.
func (s *sender) step() (more bool) {
	owed := s.owed()
	for range min(owed, burst) {
		switch err := s.socket.Send(s.payload[:], netip.AddrPort{}); {
		case err == nil:
			s.queued++
		case errors.Is(err, weir.ErrWouldBlock):
			return false // OnDrain goes on
		default:
			_ = s.loop.Close()
			return false
		}
	}
	return owed > burst
}

// owed is how many datagrams the schedule asks for by now and were not queued.
func (s *sender) owed() int64 {
	if s.rate == 0 {
		return burst + 1 // and always more
	}
	due := 1 + time.Since(s.began).Microseconds()*int64(s.rate)/1e6
	return due - s.queued
}
