package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirnet/weir"
)

// elsewhere is a machine on which weir does not run.
func elsewhere() *exam {
	return &exam{
		newLoop:   func(weir.Config) (*weir.Loop, error) { return nil, weir.ErrUnsupported },
		goos:      "plan9",
		fileLimit: func() (soft, hard uint64, err error) { return 0, 0, errors.New("this system has no such limit") },
		read:      func(string) (string, error) { return "", errors.ErrUnsupported },
		program:   func() (*os.File, error) { return nil, errors.ErrUnsupported },
	}
}

// TestDoctorElsewhere: a system without weir is told so, once, and is degraded.
func TestDoctorElsewhere(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := runDoctor(t.Context(), &out, elsewhere(), true)
	if err == nil || err.Error() != "degraded: loop" || exitCode(err) != 1 {
		t.Errorf("the error is %v, its exit code %d", err, exitCode(err))
	}
	var d diagnosis
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.OK || d.Kernel != "plan9" {
		t.Errorf("ok %v, kernel %q", d.OK, d.Kernel)
	}
	for _, c := range d.Checks {
		want := stateOff
		switch c.Name {
		case "loop":
			want = stateDegraded
			if !strings.Contains(c.Reason, "weir does not run on plan9") || c.Remedy == "" {
				t.Errorf("%+v", c)
			}
		case "weir_disable":
			want = stateNote
		}
		if c.State != want {
			t.Errorf("%s is %s, want %s", c.Name, c.State, want)
		}
	}
}

// TestDoctorInterrupted: who interrupts it gets no table, and the exit code of the signal.
func TestDoctorInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted{syscall.SIGINT})
	var out bytes.Buffer
	if err := runDoctor(ctx, &out, newExam(), false); exitCode(err) != 130 || out.Len() > 0 {
		t.Errorf("the error is %v, and %d bytes were printed", err, out.Len())
	}
}

// TestDoctorJudges has outcomes that this machine may not have.
func TestDoctorJudges(t *testing.T) {
	t.Parallel()
	e := elsewhere()
	bare := func() *outcome { return &outcome{lost: map[string]error{}} }
	with := func(change func(*outcome)) *outcome { o := bare(); change(o); return o }
	many := func(d time.Duration) []time.Duration {
		late := make([]time.Duration, waits)
		for i := range late {
			late[i] = d
		}
		return late
	}
	for _, tt := range []struct {
		name   string
		c      check
		state  state
		reason string
	}{
		{"no GSO", e.gso(bare(), nil), stateDegraded, "does not know UDP_SEGMENT"},
		{"GSO refused", e.gso(with(func(o *outcome) { o.lost["gso"] = syscall.EPERM }), nil), stateDegraded, "refused with EPERM"},
		{"GSO idle", e.gso(with(func(o *outcome) { o.sender.Paths.GSO = true }), nil), stateDegraded, "nothing went joined"},
		{"GSO fails", e.gso(bare(), syscall.EIO), stateDegraded, "input/output error"},
		{"no GRO", e.gro(bare(), nil), stateDegraded, "does not take UDP_GRO"},
		{"GRO idle", e.gro(with(func(o *outcome) { o.receiver.Paths.GRO, o.sender.SentJoined = true, 20 }), nil), stateNote, "one by one"},
		{"GRO without GSO", e.gro(with(func(o *outcome) { o.receiver.Paths.GRO = true }), nil), stateNote, "not seen at work"},
		{"no batches", e.path("recvmmsg", "mmsg", nil, false, nil, 20, "slow"), stateDegraded, "not used: slow"},
		{"batches refused", e.path("recvmmsg", "mmsg", nil, false, syscall.ENOSYS, 20, "slow"), stateDegraded, "recvmmsg is refused with ENOSYS: slow"},
		{"batches in some calls", e.path("recvmmsg", "mmsg", nil, true, nil, 2, ""), stateOn, "20 datagrams in 2 calls"},
		{"timers", judgeTimers(many(80 * time.Microsecond)), stateOn, "late by 80" + unbroken + "µs"},
		{"coarse timers", judgeTimers(many(900 * time.Microsecond)), stateDegraded, "epoll_pwait2"},
		{"coarse timers, one not", judgeTimers(append(many(900*time.Microsecond), 0)), stateDegraded, "epoll_pwait2"},
		{"fine timers, some late", judgeTimers(append(many(900 * time.Microsecond)[:10], many(0)[:10]...)), stateOn, "finer"},
	} {
		if tt.c.State != tt.state || !strings.Contains(tt.c.Reason, tt.reason) {
			t.Errorf("%s: %+v, want %s because of %q", tt.name, tt.c, tt.state, tt.reason)
		}
	}
}

// TestDoctorBuffers holds "buffers of the kernel are a note as long as they are what Linux has by default".
func TestDoctorBuffers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name               string
		granted, byDefault int
		files              map[string]string
		state              state
		reason, remedy     string
	}{
		{"a Debian", 212_992, 212_992, map[string]string{"sys/net/core/rmem_max": "212992"}, stateNote,
			"a socket has 208 KiB, and can have 208 KiB (net.core.rmem_max); QUIC wants 7 MiB", "for QUIC: sysctl -w net.core.rmem_max=7340032"},
		{"in a container", 212_992, 212_992, nil, stateNote, "can have 208 KiB", "net.core.rmem_max=7340032"},
		{"raised", 7 << 20, 212_992, map[string]string{"sys/net/core/rmem_max": "16777216"}, stateOn, "can have 7 MiB or more", ""},
		{"privileged", 7 << 20, 212_992, map[string]string{"sys/net/core/rmem_max": "4194304"}, stateNote, "others can have 4 MiB", "without privileges"},
		{"lowered", 65_536, 65_536, map[string]string{"sys/net/core/rmem_max": "65536"}, stateDegraded, "less than Linux has by default", "sysctl -w"},
		{"lowered default", 7 << 20, 4096, map[string]string{"sys/net/core/rmem_max": "7340032"}, stateDegraded, "net.core.rmem_default", "net.core.rmem_default=212992"},
		{"not told by the socket", 0, 0, map[string]string{"sys/net/core/rmem_max": "212992", "sys/net/core/rmem_default": "212992"}, stateNote, "208 KiB", "sysctl"},
		{"not told at all", 0, 0, nil, stateNote, "does not tell", ""},
	} {
		e := elsewhere()
		e.read = func(name string) (string, error) {
			text, ok := tt.files[name]
			if !ok {
				return "", os.ErrNotExist
			}
			return text, nil
		}
		c := e.buffer("receive_buffer", "net.core.rmem", tt.granted, tt.byDefault)
		reason := strings.ReplaceAll(c.Reason, unbroken, " ")
		if c.State != tt.state || !strings.Contains(reason, tt.reason) || !strings.Contains(c.Remedy, tt.remedy) || tt.remedy == "" && c.Remedy != "" {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
}

// TestDoctorSystem has what /proc and the environment may say.
func TestDoctorSystem(t *testing.T) {
	t.Parallel()
	e := elsewhere()
	e.goos = "linux"
	status := ""
	e.read = func(string) (string, error) { return status, nil }
	for text, want := range map[string]string{
		"Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0": "no filter", "Seccomp:\t2\n": "a filter (mode 2); what it refuses shows in the lines above",
		"Seccomp: 1": "mode 1", "Name:\tx": "the kernel does not tell",
	} {
		status = text
		if c := e.seccomp(); c.State != stateNote || c.Reason != want {
			t.Errorf("%q: %+v, want %q", text, c, want)
		}
	}
	for soft, want := range map[uint64]state{16: stateDegraded, 1023: stateDegraded, 1024: stateOn, 1 << 63: stateOn} {
		e.fileLimit = func() (uint64, uint64, error) { return soft, soft, nil }
		if c := e.openFiles(); c.State != want || (want == stateDegraded) != (c.Remedy != "") {
			t.Errorf("%d: %+v", soft, c)
		}
	}
	for list, want := range map[string]state{"": stateNote, " ": stateNote, "gso, mmsg": stateNote, "GSO": stateDegraded} {
		e.disable = list
		if c := e.disabled(); c.State != want {
			t.Errorf("%q: %+v", list, c)
		}
	}
}

// TestDoctorTable: lines of at most 100 columns, continued below the reason; nothing unbroken is left.
func TestDoctorTable(t *testing.T) {
	t.Parallel()
	d := diagnosis{Version: "weir v0", Kernel: "Linux 1", Checks: []check{
		on("a", "short"),
		degraded("receive_buffer", strings.Repeat("word ", 40)+"7"+unbroken+"MiB", strings.Repeat("help ", 30)+"end"),
	}}
	var out bytes.Buffer
	if err := d.printTable(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	indent := strings.Repeat(" ", strings.Index(lines[2], "short"))
	if lines[0] != "weir v0 on Linux 1" || lines[2] != "  a               on        short" {
		t.Errorf("it begins with %q", lines[:3])
	}
	for _, line := range lines[4:] {
		if !strings.HasPrefix(line, indent) || line[len(indent)] == ' ' || utf8.RuneCountInString(line) > 100 {
			t.Errorf("%q", line)
		}
	}
	if strings.Contains(out.String(), unbroken) || !strings.Contains(out.String(), indent+"remedy: help ") {
		t.Errorf("%s", out.String())
	}
}
