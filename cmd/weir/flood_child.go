package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/weirnet/weir"
)

// patience is how long the child may take to be ready, and to end.
const patience = 5 * time.Second

// flood is the parent's handle of a child that floods.
type flood struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ready chan struct{} // closed when the child waits for its order
	ended chan struct{} // closed when the child has, and the two below are set

	report floodReport
	err    error
}

// openRuntimePoller has the Go runtime open its own poller, which pipes to a child need, while there are
// descriptors for it: where there are none, the runtime ends the program with a stack trace.
func openRuntimePoller() error {
	if err := checkDescriptors(); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	_ = w.Close()
	return r.Close()
}

// checkDescriptors tells whether there are four, as many as two loops have, or the poller and a pipe.
func checkDescriptors() error {
	for range 2 {
		l, err := weir.New(weir.Config{})
		if err != nil {
			return err
		}
		defer l.Close()
	}
	return nil
}

// startFlood starts the child and waits until it is ready. end or kill must follow.
func startFlood(cfg demoConfig, target netip.AddrPort, duration time.Duration) (*flood, error) {
	f := &flood{ready: make(chan struct{}), ended: make(chan struct{})}
	if err := f.start(cfg, target, duration); err != nil {
		return nil, fmt.Errorf("flood: %w", err)
	}
	impatient := time.AfterFunc(patience, f.shoot)
	defer impatient.Stop()
	select {
	case <-f.ready:
		return f, nil
	case <-f.ended:
		return nil, f.err
	}
}

func (f *flood) start(cfg demoConfig, target netip.AddrPort, duration time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	f.cmd = exec.Command(self, "flood", target.String(), "--net", string(cfg.net), "--rate", strconv.Itoa(cfg.rate),
		"--duration", duration.String())
	var stderr strings.Builder
	f.cmd.Stderr = &stderr
	if f.stdin, err = f.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := f.cmd.StdoutPipe()
	if err != nil {
		_ = f.stdin.Close()
		return err
	}
	if err := f.cmd.Start(); err != nil { // closes the pipes
		return err
	}
	go f.follow(bufio.NewReader(stdout), &stderr)
	return nil
}

// follow reads what the child says, to its end.
func (f *flood) follow(stdout *bufio.Reader, stderr *strings.Builder) {
	defer close(f.ended)
	if _, err := stdout.ReadString('\n'); err == nil {
		close(f.ready)
	}
	unread := json.NewDecoder(stdout).Decode(&f.report)
	failed := f.cmd.Wait()
	switch said := strings.TrimSpace(stderr.String()); {
	case said != "":
		f.err = fmt.Errorf("flood: %s", strings.TrimPrefix(said, "weir: "))
	case failed != nil:
		f.err = fmt.Errorf("flood: the child ended early: %w", failed)
	case unread != nil:
		f.err = fmt.Errorf("flood: no report: %w", unread)
	}
}

// begin has the child flood. If it has died meanwhile, end tells.
func (f *flood) begin() { _, _ = io.WriteString(f.stdin, "go\n") }

// end has the child stop, and returns how many datagrams, or bytes, it sent.
func (f *flood) end() (sent uint64, err error) {
	_ = f.stdin.Close()
	impatient := time.AfterFunc(patience, f.shoot)
	defer impatient.Stop()
	<-f.ended
	return f.report.Sent, f.err
}

// kill leaves nothing of the child; it may have ended.
func (f *flood) kill() {
	_ = f.stdin.Close()
	f.shoot()
	<-f.ended
}

func (f *flood) shoot() { _ = f.cmd.Process.Kill() }
