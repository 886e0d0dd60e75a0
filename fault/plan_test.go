package fault_test

import (
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/fault"
)

// TestValidate has what a text cannot say; the rest is in TestParseErrors.
func TestValidate(t *testing.T) {
	t.Parallel()
	eio := fault.Action{Errno: syscall.EIO}
	for _, c := range []struct {
		name string
		rule fault.Rule
		want string // "" if the rule is valid
	}{
		{"zero", fault.Rule{}, `rule 2 ("call(0)#1=nothing"): "call(0)": want a call: socket, bind,`},
		{"call", fault.Rule{Call: 99, Action: eio}, `"call(99)": want a call: `},
		{"no action", fault.Rule{Call: fault.Send}, `"nothing": want one of an errno, short:N and drop, with delay:D or without`},
		{"two", fault.Rule{Call: fault.Send, Action: fault.Action{Errno: syscall.EIO, Drop: true}}, `"EIO+drop": want one of an errno`},
		{"errno", fault.Rule{Call: fault.Send, Action: fault.Action{Errno: math.MaxInt32 + 1}}, `"2147483648": want a number`},
		{"short", fault.Rule{Call: fault.Send, Action: fault.Action{Short: -1}}, `"short:-1": want a number`},
		{"delay", fault.Rule{Call: fault.Send, Action: fault.Action{Delay: -time.Second}}, `"delay:-1s": want a duration above 0`},
		{"from", fault.Rule{Call: fault.Send, From: -1, Action: eio}, `"#-1": want a number`},
		{"fd", fault.Rule{Call: fault.Send, FD: fault.OnlyFD(-2), Action: eio}, `"@fd-2": want a descriptor`},
		{"large fd", fault.Rule{Call: fault.Send, FD: fault.OnlyFD(math.MaxInt), Action: eio}, `want a descriptor`},
		{"fd of none", fault.Rule{Call: fault.Wake, FD: fault.OnlyFD(5), Action: eio}, `"@fd5": want no descriptor: wake is about none`},
		{"chance", fault.Rule{Call: fault.Send, Chance: 1.5, Action: eio}, `"%1.5": want a chance`},
		{"below 0", fault.Rule{Call: fault.Send, Chance: -0.5, Action: eio}, `"%-0.5": want a chance`},
		{"NaN", fault.Rule{Call: fault.Send, Chance: math.NaN(), Action: eio}, `"%NaN": want a chance`},

		{"least", fault.Rule{Call: fault.Send, Action: eio}, ""},
		{"for ever", fault.Rule{Call: fault.Send, Times: math.MinInt, Action: eio}, ""},
		{"any fd", fault.Rule{Call: fault.Wake, FD: fault.OnlyFD(-1), Action: eio}, ""},
		{"most", fault.Rule{Call: fault.Send, From: math.MaxInt32, Times: math.MaxInt32, Chance: 1, Action: fault.Action{Short: math.MaxInt32, Delay: math.MaxInt64}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := rules(fault.Rule{Call: fault.Bind, Action: eio}, c.rule)
			err := p.Validate()
			in, newErr := fault.NewInjector(p)
			switch {
			case c.want == "" && (err != nil || newErr != nil || in == nil):
				t.Errorf("%v: %v, NewInjector: %v", p, err, newErr)
			case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "fault: rule 2 (") || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v: error %v\nwant %s", p, err, c.want)
			case c.want != "" && (newErr == nil || in != nil):
				t.Errorf("NewInjector(%v): %v, %v, want an error", p, in, newErr)
			}
		})
	}
	many := rules(make([]fault.Rule, fault.MaxRules+1)...)
	if err := many.Validate(); err == nil || err.Error() != "fault: 257 rules, want 256 at most" {
		t.Errorf("257 rules: %v", err)
	}
}

// TestFD shows that zero is a descriptor like others, and no default.
func TestFD(t *testing.T) {
	t.Parallel()
	for _, fd := range []int{0, 1, 5} {
		if got, ok := fault.OnlyFD(fd).Number(); got != fd || !ok {
			t.Errorf("OnlyFD(%d).Number() = %d, %v", fd, got, ok)
		}
	}
	if got, ok := (fault.FD{}).Number(); got != -1 || ok || fault.OnlyFD(-1) != (fault.FD{}) {
		t.Errorf("the zero FD is %d, %v, want -1, false", got, ok)
	}
}
