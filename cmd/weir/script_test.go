package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptExits is "exits code command…": the command ends with exactly that exit code.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [args]")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if want := args[0]; strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, want %s", got, want)
	}
}

// scriptLines is "lines stdout|stderr N": the last command wrote N lines there.
func scriptLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines stdout|stderr N")
	}
	if got := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(got) != args[1] {
		ts.Fatalf("%d lines in %s, want %s", got, args[0], args[1])
	}
}

// scriptFigure is "figure bound name <=|==|>= number": so it stands in the JSON that the last command wrote.
// A name may be lag_ms.max.
func scriptFigure(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: figure bound name <=|==|>= number")
	}
	want, err := strconv.ParseFloat(args[3], 64)
	ts.Check(err)
	got, ok := figure(ts, args[0], args[1])
	if !ok {
		ts.Fatalf("no %s of %s in the JSON", args[1], args[0])
	}
	holds, known := map[string]bool{"<=": got <= want, "==": got == want, ">=": got >= want}[args[2]]
	if !known {
		ts.Fatalf("unknown comparison %q", args[2])
	}
	if !holds {
		ts.Fatalf("%s of %s is %v, want %s %v", args[1], args[0], got, args[2], want)
	}
}

func figure(ts *testscript.TestScript, bound, name string) (float64, bool) {
	var doc struct{ Runs []map[string]any }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &doc))
	for _, run := range doc.Runs {
		if run["bound"] != bound {
			continue
		}
		if lags, ok := run["lag_ms"].(map[string]any); ok {
			for of, v := range lags {
				run["lag_ms."+of] = v
			}
		}
		n, ok := run[name].(float64)
		return n, ok
	}
	return 0, false
}

// scriptDiagnosis is "diagnosis [names]": what weir doctor has written is complete, its states are known, and ok is
// what they say; its checks have these names, where some are given.
func scriptDiagnosis(ts *testscript.TestScript, neg bool, names []string) {
	if neg {
		ts.Fatalf("usage: diagnosis [names]")
	}
	d := readDiagnosis(ts)
	if d.Version == "" || d.Kernel == "" || d.OK != (len(d.degraded()) == 0) {
		ts.Fatalf("ok %v, version %q, kernel %q, degraded %q", d.OK, d.Version, d.Kernel, d.degraded())
	}
	var got []string
	for _, c := range d.Checks {
		got = append(got, c.Name)
		if !slices.Contains([]state{stateOn, stateDegraded, stateOff, stateNote}, c.State) || c.Reason == "" {
			ts.Fatalf("%+v", c)
		}
	}
	if len(names) > 0 && !slices.Equal(got, names) {
		ts.Fatalf("the checks are %q", got)
	}
}

// scriptFinding is "finding name state reason": so it stands in what weir doctor has written; both are patterns.
func scriptFinding(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: finding name state reason")
	}
	for _, c := range readDiagnosis(ts).Checks {
		if c.Name != args[0] {
			continue
		}
		if !regexp.MustCompile("^("+args[1]+")$").MatchString(string(c.State)) || !regexp.MustCompile(args[2]).MatchString(c.Reason) {
			ts.Fatalf("%+v", c)
		}
		return
	}
	ts.Fatalf("no check %s", args[0])
}

func readDiagnosis(ts *testscript.TestScript) (d diagnosis) {
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	dec.DisallowUnknownFields()
	ts.Check(dec.Decode(&d))
	return d
}
