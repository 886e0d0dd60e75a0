package fault_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirnet/weir/fault"
)

// TestRoundTrip draws plans as a program would write them, zero values included.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := fault.Plan{
			Seed:  rapid.Uint64().Draw(t, "seed"),
			Rules: rapid.SliceOfN(rapid.Custom(drawRule), 0, 6).Draw(t, "rules"),
		}
		text, err := p.MarshalText()
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		var got fault.Plan
		if err := got.UnmarshalText(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got.String() != string(text) {
			t.Fatalf("%s came back as %s", text, got)
		}
		if got.Seed != p.Seed || len(got.Rules) != len(p.Rules) {
			t.Fatalf("%s: %+v came back as %+v", text, p, got)
		}
		for i, r := range got.Rules {
			if want := meant(p.Rules[i]); !reflect.DeepEqual(r, want) {
				t.Fatalf("%s: rule %d %+v came back as %+v", text, i, want, r)
			}
		}
	})
}

// meant says what the fields' documentation says of zero values.
func meant(r fault.Rule) fault.Rule {
	if r.From == 0 { // "Default: 1."
		r.From = 1
	}
	if r.Times < 0 || r.Times == 0 && r.Chance > 0 { // "negative: all that come"; "or all if there is a Chance"
		r.Times = -1
	}
	if r.Times == 0 { // "Default: one"
		r.Times = 1
	}
	return r
}

func drawRule(t *rapid.T) fault.Rule {
	number := rapid.OneOf(rapid.IntRange(0, 12), rapid.IntRange(0, math.MaxInt32))
	r := fault.Rule{
		Call:   rapid.SampledFrom(slices.Collect(fault.AllCalls())).Draw(t, "call"),
		From:   number.Draw(t, "from"),
		Times:  rapid.OneOf(number, rapid.IntRange(-3, -1)).Draw(t, "times"),
		Chance: rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1)).Draw(t, "chance"),
		Action: fault.Action{Delay: time.Duration(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "delay"))},
	}
	switch r.Call {
	case fault.Socket, fault.Poller, fault.Wait, fault.Wake, fault.Unlink:
	default:
		if rapid.Bool().Draw(t, "one descriptor") {
			r.FD = fault.OnlyFD(rapid.IntRange(0, math.MaxInt32-1).Draw(t, "fd"))
		}
	}
	kinds := []string{"errno"}
	switch r.Call {
	case fault.Recv, fault.Send, fault.RecvErrors:
		kinds = append(kinds, "short", "drop")
	case fault.Wait, fault.Read, fault.Write, fault.SendFile, fault.WriteFiles, fault.ReadFiles:
		kinds = append(kinds, "short")
	}
	if r.Action.Delay > 0 {
		kinds = append(kinds, "none")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "action") {
	case "errno":
		r.Action.Errno = rapid.SampledFrom(append(fault.Errnos(r.Call), math.MaxInt32)).Draw(t, "errno")
	case "short":
		r.Action.Short = max(number.Draw(t, "short"), 1)
	case "drop":
		r.Action.Drop = true
	}
	return r
}

// FuzzParse wants every text either refused, or read as a valid plan that is written and read as itself.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		p, err := fault.Parse(text)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes: %v", len(err.Error()), err)
			}
			return
		}
		written, err := p.MarshalText()
		if err != nil {
			t.Fatalf("read as %+v, which is invalid: %v", p, err)
		}
		again, err := fault.Parse(string(written))
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Fatalf("written as %q, read as %+v, %v, want %+v", written, again, err, p)
		}
	})
}
