package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows says what a package may import from this module; "." is the root. It is the picture in
// docs/DESIGN.md as a table: a row for each package, those not written yet included. Packages above
// the root and dgram use their public API only; weirtest is the one that may reach the machinery.
var arrows = map[string][]string{
	".":     {"internal/cycles", "internal/poll", "internal/share", "internal/batch", "internal/stream", "internal/sock", "internal/sys", "fault"},
	"dgram": {"internal/batch", "internal/sock", "internal/sys", "fault"},
	"fault": {},

	"cmd/weir": {".", "dgram", "weirtls", "weirhttp", "handoff", "relay", "fault"},
	"handoff":  {".", "dgram"},
	"lab":      {".", "dgram", "weirtls", "weirhttp", "handoff", "relay", "fault"}, // all packages below lab
	"relay":    {".", "weirtls", "handoff"},
	"weirhttp": {".", "dgram", "handoff"},
	"weirprom": {".", "dgram", "weirtls"},
	"weirtest": {".", "internal/memsys", "internal/poll", "internal/sys", "fault"},
	"weirtls":  {"."},

	"internal/batch":       {"internal/sock", "internal/sys"},
	"internal/cycles":      {},
	"internal/lint":        {},
	"internal/memsys":      {"internal/poll", "internal/sock", "internal/sys"},
	"internal/netsys":      {"internal/poll", "internal/sys"},
	"internal/poll":        {"internal/cycles", "internal/sys", "fault"},
	"internal/share":       {},
	"internal/sock":        {"internal/sys"},
	"internal/stream":      {"internal/sys"},
	"internal/sys":         {"fault"},
	"internal/sys/systest": {"internal/poll", "internal/sys"},
}

// testArrows is what the tests of any package may import besides its row: the kernel in memory, the
// suites, and the contracts to write a test double for.
var testArrows = []string{"fault", "internal/memsys", "internal/poll", "internal/sys", "internal/sys/systest", "weirtest"}

// TestArrows holds "arrows point down only".
func TestArrows(t *testing.T) {
	prove(t, checkArrows, map[string]string{
		"go.mod":                 "module " + modulePath,
		"weir.go":                imports("weir", "errors", modulePath+"/internal/poll", modulePath+"/dgram"),
		"weir_test.go":           imports("weir_test", modulePath, modulePath+"/internal/memsys", modulePath+"/relay"),
		"internal/poll/poll.go":  imports("poll", modulePath+"/internal/memsys"),
		"internal/extra/x.go":    imports("extra"),
		"lab/echo/echo.go":       imports("main", modulePath+"/lab/load", modulePath+"/relay", modulePath+"/internal/sys"),
		"lab/go.mod":             "module " + modulePath + "/lab",
		"lab/load/load.go":       imports("load", "github.com/other/thing"),
		"internal/share/ring.go": imports("share", modulePath+"x/internal/sys"),
	},
		`weir.go:5: . may not import dgram; allowed: internal/cycles internal/poll internal/share internal/batch internal/stream internal/sock internal/sys fault`,
		`weir_test.go:5: . (tests) may not import relay; allowed besides its row: fault internal/memsys internal/poll internal/sys internal/sys/systest weirtest`,
		`internal/extra: a package without a row: say what it may import in arrows, internal/lint/arrows_test.go, and draw it in docs/DESIGN.md`,
		`internal/poll/poll.go:3: internal/poll may not import internal/memsys; allowed: internal/cycles internal/sys fault`,
		`lab/echo/echo.go:5: lab/echo may not import internal/sys; allowed: . dgram weirtls weirhttp handoff relay fault`,
	)
}

func checkArrows(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		row, ok := arrows[rowOf(p.dir)]
		if !ok {
			out = append(out, p.dir+": a package without a row: say what it may import in arrows, internal/lint/arrows_test.go, and draw it in docs/DESIGN.md")
			continue
		}
		for _, f := range p.files {
			for _, spec := range f.ast.Imports {
				to, ours := inModule(importPath(spec.Path.Value))
				switch {
				case !ours, slices.Contains(row, to), f.test && to == p.dir, p.dir != rowOf(p.dir) && rowOf(to) == rowOf(p.dir):
				case f.test && slices.Contains(testArrows, to):
				case f.test:
					out = append(out, t.at(spec, "%s (tests) may not import %s; allowed besides its row: %s", p.dir, to, strings.Join(testArrows, " ")))
				default:
					out = append(out, t.at(spec, "%s may not import %s; allowed: %s", p.dir, to, strings.Join(row, " ")))
				}
			}
		}
	}
	return out
}

// rowOf returns the key in arrows: lab has one row for all of its packages.
func rowOf(dir string) string {
	if below(dir, "lab") {
		return "lab"
	}
	return dir
}

// inModule returns the directory of an import path of this module.
func inModule(imp string) (dir string, ok bool) {
	if imp == modulePath {
		return ".", true
	}
	return strings.CutPrefix(imp, modulePath+"/")
}

func importPath(lit string) string {
	s, err := strconv.Unquote(lit)
	if err != nil {
		return lit
	}
	return s
}

// TestArrowsPointDown keeps the table itself free of cycles and of names without a row.
func TestArrowsPointDown(t *testing.T) {
	if got := cycle(arrows); got != "" {
		t.Error(got)
	}
	for name, table := range map[string]map[string][]string{
		"a -> b -> a: a cycle":      {"a": {"b"}, "b": {"a"}},
		"a -> c: c has no row":      {"a": {"c"}},
		"a -> b -> b: a cycle":      {"a": {"b"}, "b": {"b"}},
		"b -> c -> d -> b: a cycle": {"a": {}, "b": {"c"}, "c": {"d"}, "d": {"b"}},
	} {
		if got := cycle(table); got != name {
			t.Errorf("cycle(%v) = %q, want %q", table, got, name)
		}
	}
}

// cycle describes the first path in the table that comes back, or that leaves it; "" if there is none.
func cycle(table map[string][]string) string {
	var walk func(trail []string) string
	walk = func(trail []string) string {
		last := trail[len(trail)-1]
		row, ok := table[last]
		if !ok {
			return fmt.Sprintf("%s: %s has no row", strings.Join(trail, " -> "), last)
		}
		for _, next := range row {
			longer := append(slices.Clone(trail), next)
			if slices.Contains(trail, next) {
				return strings.Join(longer, " -> ") + ": a cycle"
			}
			if s := walk(longer); s != "" {
				return s
			}
		}
		return ""
	}
	for _, dir := range slices.Sorted(maps.Keys(table)) {
		if s := walk([]string{dir}); s != "" {
			return s
		}
	}
	return ""
}

// imports makes a Go file whose imports stand on lines 3, 4, …
func imports(name string, paths ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\nimport (\n", name)
	for _, p := range paths {
		fmt.Fprintf(&b, "_ %q\n", p)
	}
	return b.String() + ")\n"
}
