package lint

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// unfinished are the words for work left over; it belongs into the tracker. The brackets keep the
// pattern from finding itself.
var unfinished = regexp.MustCompile(`\b(T[O]DO|F[I]XME|X[X]X|H[A]CK)\b`)

// TestNoUnfinished reads every text file.
func TestNoUnfinished(t *testing.T) {
	todo, fix := "TO"+"DO", "FIX"+"ME"
	prove(t, checkUnfinished, map[string]string{
		"a.go":      "package a // " + todo + "(me): more\n// hacksaw, XXXXXX",
		"a_test.go": "package a\n\n// " + fix,
		"README.md": "# a\n" + todo + " list",
		"go.sum":    todo,
	},
		"README.md:2: "+todo+": do it, or file it in the tracker",
		"a.go:1: "+todo+": do it, or file it in the tracker",
		"a_test.go:3: "+fix+": do it, or file it in the tracker",
	)
}

func checkUnfinished(t *tree) []string {
	return grep(t, unfinished, func(string) bool { return true }, "%s: do it, or file it in the tracker")
}

// machinePath is a path that exists on somebody's machine only.
var machinePath = regexp.MustCompile(`(?:^|[^\w.~)}-])(/(?:home|root|tmp|work|Users|var/folders)/[^\s"'` + "`" + `]*)`)

// TestNoMachinePaths reads every text file but the tests.
func TestNoMachinePaths(t *testing.T) {
	prove(t, checkMachinePaths, map[string]string{
		"a.go":      "package a\n\nconst dir = \"/tmp/x\" // see ~/work/ and ./tmp/ and a/tmp/b\nconst u = \"https://example.com/home/x\"",
		"a_test.go": "package a\nconst dir = \"/tmp/x\"",
		"Makefile":  "all:\n\tcd /home/me/weir && make\n\t$(TMPDIR)/tmp/x\n",
	},
		"Makefile:2: /home/me/weir: a path of one machine",
		"a.go:3: /tmp/x: a path of one machine",
	)
}

func checkMachinePaths(t *tree) []string {
	notTest := func(p string) bool { return !strings.HasSuffix(p, "_test.go") }
	return grep(t, machinePath, notTest, "%s: a path of one machine")
}

// A port that a test listens on is 0. The heuristic is an address of this host with another port; a
// test that only parses it, or whose kernel is in memory, says so: "weir:port why" on the line, or
// "weir:ports why" anywhere for the whole file.
var (
	literalPort = regexp.MustCompile(`(?:127\.0\.0\.1|localhost|\[::1\]):[1-9]\d*`)
	portAllowed = regexp.MustCompile(`//\s*weir:port \w`)
	fileAllowed = regexp.MustCompile(`//\s*weir:ports \w`)
)

// TestNoLiteralPorts holds "to avoid: literal ports in tests".
func TestNoLiteralPorts(t *testing.T) {
	v4, v6, name := "127.0.0.1"+":53", "[::1]"+":80", "localhost"+":8080"
	prove(t, checkPorts, map[string]string{
		"a.go":      "package a\nconst a = \"" + v4 + `"`,
		"a_test.go": "package a\nconst a = \"" + v4 + "\"\nconst b = `" + v6 + "`\nconst c = \"127.0.0.1:0\"\nconst d = \"" + name + "\" // weir:port parsed only\nconst e = \"" + name + "\" // weir:port",
		"b_test.go": "package a\n\n// weir:ports the kernel is in memory\n\nconst a = \"" + v4 + `"`,
	},
		"a_test.go:2: "+v4+": a literal port is taken on somebody's machine: use 0",
		"a_test.go:3: "+v6+": a literal port is taken on somebody's machine: use 0",
		"a_test.go:6: "+name+": a literal port is taken on somebody's machine: use 0",
	)
}

func checkPorts(t *tree) []string {
	var out []string
	for _, x := range t.texts {
		if !strings.HasSuffix(x.path, "_test.go") || fileAllowed.Match(x.src) {
			continue
		}
		for i, line := range bytes.Split(x.src, []byte("\n")) {
			if m := literalPort.Find(line); m != nil && !portAllowed.Match(line) {
				out = append(out, fmt.Sprintf("%s:%d: %s: a literal port is taken on somebody's machine: use 0", x.path, i+1, m))
			}
		}
	}
	return out
}

// grep returns a finding for each line that matches in the files wanted; format gets the last group.
func grep(t *tree, re *regexp.Regexp, want func(path string) bool, format string) []string {
	var out []string
	for _, x := range t.texts {
		if !want(x.path) {
			continue
		}
		for i, line := range bytes.Split(x.src, []byte("\n")) {
			if m := re.FindSubmatch(line); m != nil {
				out = append(out, fmt.Sprintf("%s:%d: "+format, x.path, i+1, m[len(m)-1]))
			}
		}
	}
	return out
}
