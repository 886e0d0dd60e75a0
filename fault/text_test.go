package fault_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/fault"
)

func rules(r ...fault.Rule) fault.Plan { return fault.Plan{Rules: r} }

// TestParse shows each form of the text, what it means, and how it is written (as it was, if text is empty).
func TestParse(t *testing.T) {
	t.Parallel()
	type action = fault.Action
	for _, c := range []struct {
		name, in, text string
		want           fault.Plan
	}{
		{"nothing", "", "", fault.Plan{}},
		{"blanks", " ; ;\n", "-", fault.Plan{}},
		{"seed", "seed=18446744073709551615", "", fault.Plan{Seed: math.MaxUint64}},
		{"seed behind", "send=drop;seed=7", "seed=7; send=drop", fault.Plan{Seed: 7, Rules: []fault.Rule{
			{Call: fault.Send, From: 1, Times: -1, Action: action{Drop: true}}}}},
		{"one call", "send#3=EPERM", "", rules(fault.Rule{Call: fault.Send, From: 3, Times: 1, Action: action{Errno: syscall.EPERM}})},
		{"the first", "bind#1=EIO", "", rules(fault.Rule{Call: fault.Bind, From: 1, Times: 1, Action: action{Errno: syscall.EIO}})},
		{"all", "recv=short:1", "", rules(fault.Rule{Call: fault.Recv, From: 1, Times: -1, Action: action{Short: 1}})},
		{"all, said so", "recv#1*=ENOSYS", "recv=ENOSYS", rules(fault.Rule{Call: fault.Recv, From: 1, Times: -1, Action: action{Errno: syscall.ENOSYS}})},
		{"all by a star", "recv*=ENOSYS", "recv=ENOSYS", rules(fault.Rule{Call: fault.Recv, From: 1, Times: -1, Action: action{Errno: syscall.ENOSYS}})},
		{"all from", "recv#2*=ENOSYS", "", rules(fault.Rule{Call: fault.Recv, From: 2, Times: -1, Action: action{Errno: syscall.ENOSYS}})},
		{"some", "send@fd5#2x10=ENOBUFS", "", rules(fault.Rule{Call: fault.Send, FD: fault.OnlyFD(5), From: 2, Times: 10, Action: action{Errno: syscall.ENOBUFS}})},
		{"the first ten", "sendx10=EIO", "send#1x10=EIO", rules(fault.Rule{Call: fault.Send, From: 1, Times: 10, Action: action{Errno: syscall.EIO}})},
		{"order of marks", "close%0.5x3#2@fd0=EIO", "close@fd0#2x3%0.5=EIO", rules(fault.Rule{Call: fault.Close, FD: fault.OnlyFD(0), From: 2, Times: 3, Chance: .5, Action: action{Errno: syscall.EIO}})},
		{"chance", "send%0.01=drop", "", rules(fault.Rule{Call: fault.Send, From: 1, Times: -1, Chance: .01, Action: action{Drop: true}})},
		{"chance from", "send#5%1e-05=drop", "", rules(fault.Rule{Call: fault.Send, From: 5, Times: -1, Chance: 1e-5, Action: action{Drop: true}})},
		{"chance once", "send#5x1%1=drop", "", rules(fault.Rule{Call: fault.Send, From: 5, Times: 1, Chance: 1, Action: action{Drop: true}})},
		{"delay", "wait#4=delay:20ms", "", rules(fault.Rule{Call: fault.Wait, From: 4, Times: 1, Action: action{Delay: 20 * time.Millisecond}})},
		{"delay and errno", "wait=EBADF+delay:1.5µs", "wait=delay:1.5us+EBADF", rules(fault.Rule{Call: fault.Wait, From: 1, Times: -1, Action: action{Delay: 1500, Errno: syscall.EBADF}})},
		{"delay and drop", "recverr=delay:1h0m0s+drop", "", rules(fault.Rule{Call: fault.RecvErrors, From: 1, Times: -1, Action: action{Delay: time.Hour, Drop: true}})},
		{"number", fmt.Sprintf("dup=%d", syscall.EMFILE), "dup=EMFILE", rules(fault.Rule{Call: fault.Duplicate, From: 1, Times: -1, Action: action{Errno: syscall.EMFILE}})},
		{"number without a name", "dup=1999999999", "", rules(fault.Rule{Call: fault.Duplicate, From: 1, Times: -1, Action: action{Errno: 1999999999}})},
		{"first name of a number", "bind=ENOTSUP", "-", rules(fault.Rule{Call: fault.Bind, From: 1, Times: -1, Action: action{Errno: syscall.ENOTSUP}})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := fault.Parse(c.in)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Fatalf("Parse(%q) = %+v, %v\nwant %+v", c.in, got, err, c.want)
			}
			want := c.text
			if want == "" {
				want = c.in
			}
			if text := got.String(); want != "-" && text != want {
				t.Errorf("written as %q, want %q", text, want)
			}
		})
	}
}

// TestParseErrors holds "errors name the rule, the word that is wrong, and what would be right".
func TestParseErrors(t *testing.T) {
	t.Parallel()
	const (
		number = "want a number from 1 to 2147483647"
		marks  = "want @fdN, #N, xN, *, %P or ="
		once   = "want each of @fd, #, x or *, and % once"
		action = "want an errno by its name in POSIX or its number (EPERM, 1), short:N, drop or delay:D"
		one    = "want no more than one of an errno, short:N and drop, with delay:D or without"
		chance = "want a chance above 0 and up to 1; 0.01 is one in a hundred"
	)
	for in, want := range map[string]string{
		"send":                             `rule 1 ("send"): "send": want call=action`,
		"bind=EIO;=EIO":                    `rule 2 ("=EIO"): "": want a call: socket, bind, `,
		"sned=EIO":                         `"sned": want a call: socket, bind, connect`,
		"sned#1=EIO":                       `"sned#1": want a call: `,
		"Send=EIO":                         `"Send": want a call: `,
		"x=EIO":                            `"x": want a call: `,
		"snedx1=EIO":                       `"snedx1": want a call: `,
		"sent=EIO":                         `unlink, writefiles, readfiles; or seed=N`,
		"send3=EIO":                        `"3": ` + marks,
		"send =EIO":                        `" ": ` + marks,
		"send!#1=EIO":                      `"!": ` + marks,
		"send**=EIO":                       `"*": ` + once,
		"send*3=EIO":                       `"*3": ` + marks,
		"send#=EIO":                        `"#": ` + number,
		"send#0=EIO":                       `"#0": ` + number,
		"send#-1=EIO":                      `"#-1": ` + number,
		"send#+1=EIO":                      `"#+1": ` + number,
		"send#1_0=EIO":                     `"#1_0": ` + number,
		"send#2147483648=EIO":              `"#2147483648": ` + number,
		"send#1#2=EIO":                     `"#2": ` + once,
		"sendx0=EIO":                       `"x0": ` + number,
		"send#1x1x1=EIO":                   `"x1": ` + once,
		"send#1x1*=EIO":                    `"*": ` + once,
		"send*x1=EIO":                      `"x1": ` + once,
		"send%0=EIO":                       `"%0": ` + chance,
		"send%1.1=EIO":                     `"%1.1": ` + chance,
		"send%-1=EIO":                      `"%-1": ` + chance,
		"send%nan=EIO":                     `"%nan": ` + chance,
		"send%1e-999=EIO":                  `"%1e-999": ` + chance,
		"send%1_0e-2=EIO":                  `"%1_0e-2": ` + chance,
		"send%.5%.5=EIO":                   `"%.5": ` + once,
		"send@5=EIO":                       `"@5": want @fdN with a descriptor from 0 to 2147483646`,
		"send@fd=EIO":                      `"@fd": want @fdN with`,
		"send@fd-1=EIO":                    `"@fd-1": want @fdN with`,
		"send@fd2147483647=EIO":            `"@fd2147483647": want @fdN with`,
		"send@fd1@fd1=EIO":                 `"@fd1": ` + once,
		"wait@fd1=EIO":                     `"@fd1": want no descriptor: wait is about none`,
		"socket@fd0=EIO":                   `"@fd0": want no descriptor: socket is about none`,
		"send=":                            `"": ` + action,
		"send=EWHAT":                       `"EWHAT": ` + action,
		"send=eperm":                       `"eperm": ` + action,
		"send=0":                           `"0": ` + action,
		"send=-1":                          `"-1": ` + action,
		"send=2147483648":                  `"2147483648": ` + action,
		"send=drop:1":                      `"drop:1": ` + action,
		"send=drop:":                       `"drop:": ` + action,
		"send=EIO=EIO":                     `"EIO=EIO": ` + action,
		"send=EIO+":                        `"": ` + one,
		"send=EIO+EPERM":                   `"EPERM": ` + one,
		"send=drop+short:1":                `"short:1": ` + one,
		"send=short:1+drop":                `"drop": ` + one,
		"send=delay:1s+delay:1s":           `"delay:1s": ` + one,
		"send=short":                       `"short": ` + number,
		"send=short:0":                     `"short:0": ` + number,
		"bind=short:1":                     `"short:1": want short with one of recv, send, recverr, wait, read, write, sendfile, writefiles, readfiles`,
		"wake=drop":                        `"drop": want drop with one of recv, send, recverr`,
		"wait=drop":                        `"drop": want drop with one of recv, send, recverr`,
		"read=drop":                        `"drop": want drop with one of recv, send, recverr`,
		"writefiles=drop":                  `"drop": want drop with one of recv, send, recverr`,
		"accept=short:1":                   `"short:1": want short with one of recv, send, recverr, wait, read`,
		"unlink@fd3=EIO":                   `"@fd3": want no descriptor: unlink is about none`,
		"send=delay":                       `"delay": want a duration above 0 like 20ms`,
		"send=delay:0s":                    `"delay:0s": want a duration above 0`,
		"send=delay:-1s":                   `"delay:-1s": want a duration above 0`,
		"send=delay:1":                     `"delay:1": want a duration above 0`,
		"seed=":                            `"seed=": want one seed, from 0 to 18446744073709551615`,
		"seed=-1":                          `"seed=-1": want one seed`,
		"seed=0;seed=0":                    `"seed=0": want one seed`,
		"seed=18446744073709551616":        `"seed=18446744073709551616": want one seed`,
		strings.Repeat("send=EIO;", 257):   `more than 256 rules`,
		strings.Repeat(" ", 1<<16+1):       `a text of 65537 bytes, want 65536 at most`,
		"x" + strings.Repeat("y", 1000):    `want call=action`,
		"x" + strings.Repeat("y=", 10_000): `want a call: `,
	} {
		p, err := fault.Parse(in)
		switch {
		case err == nil:
			t.Errorf("Parse(%.80q) = %v, want an error", in, p)
		case !strings.HasPrefix(err.Error(), "fault: ") || !strings.Contains(err.Error(), want) || len(err.Error()) > 500:
			t.Errorf("Parse(%.80q): %v\nwant %s", in, err, want)
		case !reflect.DeepEqual(p, fault.Plan{}):
			t.Errorf("Parse(%.80q) = %v with an error, want the zero Plan", in, p)
		}
	}
}

// TestMarshal goes through encoding/json, which takes the text.
func TestMarshal(t *testing.T) {
	t.Parallel()
	type settings struct{ Faults fault.Plan }
	const text = `{"Faults":"seed=7; send#3=EPERM"}`
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.Faults.Seed != 7 {
		t.Fatalf("%+v, %v", s, err)
	}
	if b, err := json.Marshal(s); err != nil || string(b) != text {
		t.Errorf("%s, %v, want %s", b, err, text)
	}
	before := s.Faults.String()
	if err := s.Faults.UnmarshalText([]byte("send")); err == nil || s.Faults.String() != before {
		t.Errorf("after a wrong text: %v, error %v, want %s and an error", s.Faults, err, before)
	}
	s.Faults.Rules[0].Times = math.MaxInt
	if b, err := s.Faults.MarshalText(); err == nil && math.MaxInt > math.MaxInt32 {
		t.Errorf("an invalid plan has the text %s", b)
	}
}

// TestTextFits holds "the text of every valid plan is shorter" than MaxTextBytes.
func TestTextFits(t *testing.T) {
	t.Parallel()
	longest := fault.Rule{
		Call: fault.BindToDevice, FD: fault.OnlyFD(math.MaxInt32 - 1), From: math.MaxInt32, Times: math.MaxInt32,
		Chance: 5.012345678901234e-300, Action: fault.Action{Errno: syscall.EPROTONOSUPPORT, Delay: math.MaxInt64},
	}
	p := fault.Plan{Seed: math.MaxUint64}
	for range fault.MaxRules {
		p.Rules = append(p.Rules, longest)
	}
	text, err := p.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	got, err := fault.Parse(string(text))
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("%d bytes: %v", len(text), err)
	}
}
