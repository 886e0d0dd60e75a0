package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirnet/weir"
)

const doctorText = `Tells what weir uses on this machine, what it cannot use, and what to do about it.

It tries things out, by sockets of weir on the loopback interface, so what it says is what weir does. The
rest it reads in /proc. It takes about a second, needs no privileges and changes nothing.

Each line has a name, a state, a reason and, where there is one, a remedy:

  on        it works
  degraded  it does not work, or worse than weir can: the exit code is 1
  off       not in use: WEIR_DISABLE switches it off, or what it needs is degraded
  note      to know; nothing is wrong

Buffers of the kernel are a note as long as they are what Linux has by default or more, though QUIC wants
7 MiB: what a program needs depends on its peers, and a machine as it came is not ill. So is a machine
without IPv6, and a backlog of less than the 4,096 connections that a listener asks for. Fewer than 1024 open
files are degraded, and a backlog below 128.

With --json there is {"ok", "version", "kernel", "checks": [{"name", "state", "reason", "remedy"}]}: ok tells
that nothing is degraded, all others are text, and a remedy may be empty. Names and states stay as they are;
reasons and remedies are for people. Checks may be added.`

const doctorExample = `  weir doctor
  weir doctor --json | jq -r '.checks[] | select(.state == "degraded") | .remedy'
  WEIR_DISABLE=gso,gro weir doctor     what it is like without`

func newDoctor() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Tell what weir can and cannot use on this machine",
		Long:    doctorText,
		Example: doctorExample,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, done := catchSignals()
			defer done()
			return runDoctor(ctx, cmd.OutOrStdout(), newExam(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of the table")
	return cmd
}

// runDoctor examines and prints; its error names what is degraded.
func runDoctor(ctx context.Context, w io.Writer, e *exam, asJSON bool) error {
	checks := e.checks(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d := diagnosis{Version: version(), Kernel: e.kernel(), Checks: checks}
	ill := d.degraded()
	d.OK = len(ill) == 0
	report := d.printTable
	if asJSON {
		report = d.printJSON
	}
	if err := report(w); err != nil || d.OK {
		return err
	}
	return fmt.Errorf("degraded: %s", strings.Join(ill, ", "))
}

// exam is a machine to examine; in tests some of it is made up.
type exam struct {
	newLoop   func(weir.Config) (*weir.Loop, error)
	goos      string
	disable   string // WEIR_DISABLE
	fileLimit func() (soft, hard uint64, err error)
	read      func(name string) (string, error) // a file below /proc
	program   func() (*os.File, error)          // this program's own file
}

func newExam() *exam {
	return &exam{
		newLoop: weir.New, goos: runtime.GOOS, disable: os.Getenv(disableVariable), fileLimit: fileLimit,
		read:    func(name string) (string, error) { return readFile("/proc/" + name) },
		program: openProgram,
	}
}

// checks are all of them, in the order that they are shown in.
func (e *exam) checks(ctx context.Context) []check {
	loop, works := e.loop(ctx)
	checks := []check{loop}
	for _, p := range []struct {
		names string
		run   func(context.Context) []check
	}{
		{"recvmmsg sendmmsg", e.batches},
		{"gso gro", e.trains},
		{"reports", e.reports},
		{"drops", e.drops},
		{"local_address", e.localAddress},
		{"ecn", e.ecn},
		{"receive_time", e.receiveTime},
		{"ipv6", e.ipv6},
		{"receive_buffer send_buffer", e.buffers},
		{"tcp", e.tcp},
		{"backlog", e.backlog},
		{"unix_sockets", e.unixSockets},
		{"descriptors", e.descriptors},
		{"sendfile", e.sendFile},
		{"timers", e.timers},
	} {
		if works {
			checks = append(checks, p.run(ctx)...)
			continue
		}
		for name := range strings.FieldsSeq(p.names) {
			checks = append(checks, off(name, "it needs a loop with sockets", ""))
		}
	}
	return append(checks, e.openFiles(), e.seccomp(), e.disabled())
}
