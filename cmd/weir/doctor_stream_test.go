package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/fault"
)

// TestDoctorStreams has the calls of streams fail on this machine, and expects to be told.
func TestDoctorStreams(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the loop does not work here")
	}
	tcp, unix, files, send := (*exam).tcp, (*exam).unixSockets, (*exam).descriptors, (*exam).sendFile
	for _, tt := range []struct {
		name   string
		faults string
		check  func(e *exam) check
		state  state
		reason string
		remedy string
	}{
		{"tcp", "", only(t, tcp), stateOn, "over loopback", ""},
		{"no listener", "listen=EACCES", only(t, tcp), stateDegraded, "listen: permission denied", "seccomp"},
		{"no connection", "connect=ENETUNREACH", only(t, tcp), stateDegraded, "dial tcp 127.0.0.1:", "loopback interface is up"},
		{"nothing accepted", "accept=EMFILE", only(t, tcp), stateDegraded, "too many open files", "ulimit"},
		{"reset", "read#1=ECONNRESET", only(t, tcp), stateDegraded, "connection reset", "firewall"},
		{"slow", "read=short:1;write=short:1", only(t, tcp), stateOn, "over loopback", ""},
		{"unix", "", only(t, unix), stateOn, "abstract name", ""},
		{"no names", "bind=EPERM", only(t, unix), stateDegraded, "operation not permitted", "sandbox"},
		{"files", "", only(t, files), stateOn, "works", ""},
		{"no files read", "readfiles=EPERM", only(t, files), stateDegraded, "operation not permitted", "sandbox"},
		{"no copy to send", "dup=EMFILE", only(t, files), stateDegraded, "too many open files", "ulimit"},
		{"sendfile", "", only(t, send), stateOn, "128 KiB of a file went out in 1 call, without a copy", ""},
		{"no sendfile", "sendfile=ENOSYS", only(t, send), stateDegraded, "in 2 calls: sendfile is missing or refused", "allow sendfile"},
		{"sendfile in pieces", "sendfile=short:40000", only(t, send), stateNote, "in 4 calls, as socket buffers are small", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newExam()
			e.newLoop = withFaults(t, tt.faults)
			c := tt.check(e)
			reason := strings.ReplaceAll(c.Reason, unbroken, " ")
			if c.State != tt.state || !strings.Contains(reason, tt.reason) || !strings.Contains(c.Remedy, tt.remedy) || tt.remedy == "" && c.Remedy != "" {
				t.Errorf("%+v", c)
			}
		})
	}
}

// only makes the check alone.
func only(t *testing.T, run func(*exam, context.Context) []check) func(e *exam) check {
	return func(e *exam) check { return run(e, t.Context())[0] }
}

// withFaults makes loops of this machine whose calls fail as the plan says.
func withFaults(t *testing.T, plan string) func(weir.Config) (*weir.Loop, error) {
	t.Helper()
	p, err := fault.Parse(plan)
	if err != nil {
		t.Fatal(err)
	}
	return func(cfg weir.Config) (*weir.Loop, error) {
		cfg.Faults = p
		return weir.New(cfg)
	}
}

// TestDoctorBacklog holds "a backlog below 128 is degraded, below 4,096 a note".
func TestDoctorBacklog(t *testing.T) {
	t.Parallel()
	const raise = "sysctl -w net.core.somaxconn=4096"
	for _, tt := range []struct {
		name, text     string
		err            error
		state          state
		reason, remedy string
	}{
		{"tiny", "127", nil, stateDegraded, "at most 127 can wait to be accepted (net.core.somaxconn): less than", raise},
		{"old", "128", nil, stateNote, "weir asks for 4,096", "for many at once: " + raise},
		{"lowered", "4095", nil, stateNote, "at most 4,095 can wait", raise},
		{"usual", "4096", nil, stateOn, "at most 4,096 can wait", ""},
		{"raised", "65535", nil, stateOn, "at most 65,535 can wait", ""},
		{"not told", "", os.ErrNotExist, stateNote, "does not tell", ""},
		{"not a number", "many", nil, stateNote, "does not tell", ""},
	} {
		e := elsewhere()
		e.read = func(name string) (string, error) {
			if name != "sys/net/core/somaxconn" {
				t.Errorf("%s is read", name)
			}
			return tt.text, tt.err
		}
		c := e.backlog(t.Context())[0]
		if c.State != tt.state || !strings.Contains(c.Reason, tt.reason) || !strings.Contains(c.Remedy, tt.remedy) || tt.remedy == "" && c.Remedy != "" {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
}

// TestDoctorJudgesStreams has outcomes that this machine may not have.
func TestDoctorJudgesStreams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		c      check
		state  state
		reason string
	}{
		{"another descriptor", judgeDescriptors(io.ErrUnexpectedEOF), stateDegraded, "unexpected EOF"},
		{"no file", unread("sendfile", os.ErrPermission), stateNote, "cannot be read: permission denied"},
		{"no descriptor for a file", unread("sendfile", syscall.EMFILE), stateDegraded, "too many open files"},
		{"sendfile fails", judgeSendFile(0, errors.New("no luck")), stateDegraded, "no luck"},
	} {
		if tt.c.State != tt.state || !strings.Contains(tt.c.Reason, tt.reason) {
			t.Errorf("%s: %+v, want %s because of %q", tt.name, tt.c, tt.state, tt.reason)
		}
	}
}
