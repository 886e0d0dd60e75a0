package lint

import (
	"slices"
	"strings"
	"testing"
)

// outside says who may import what from other modules. A dependency is few, alive and licensed, and
// docs/adr gives its reason; lab, a module of its own, is free.
var outside = []struct {
	module string
	code   []string // packages; "x/..." is x and all below, "..." all
	tests  []string // packages whose tests may, too
}{
	{module: "golang.org/x/sys", code: []string{".", "internal/...", "dgram", "handoff", "fault"}, tests: []string{"..."}},
	{module: "golang.org/x/net", code: []string{"dgram", "weirhttp"}, tests: []string{"..."}}, // ipv4.Message, httpguts; nettest
	{module: "github.com/quic-go/quic-go", code: []string{"weirhttp"}, tests: []string{"dgram"}},
	{module: "github.com/prometheus/client_golang", code: []string{"weirprom"}},
	{module: "github.com/spf13/cobra", code: []string{"cmd/weir"}},
	{module: "github.com/spf13/pflag", code: []string{"cmd/weir"}},                         // cobra's flags
	{module: "github.com/rogpeppe/go-internal", tests: []string{"cmd/weir"}},               // testscript
	{module: "go.uber.org/goleak", tests: []string{"..."}},                                 // TestMain
	{module: "pgregory.net/rapid", tests: []string{"internal/...", ".", "dgram", "fault"}}, // property tests
}

// TestOutside holds "the root and its internals import std and golang.org/x/sys only".
func TestOutside(t *testing.T) {
	prove(t, checkOutside, map[string]string{
		"weir.go":                    imports("weir", "net/netip", "golang.org/x/sys/unix", "golang.org/x/net/ipv4"),
		"weir_test.go":               imports("weir", "golang.org/x/net/nettest", "pgregory.net/rapid", "github.com/rogpeppe/go-internal/testscript"),
		"internal/sock/opt.go":       imports("sock", "C", "golang.org/x/sys/unix", "github.com/spf13/cobra"),
		"cmd/weir/main.go":           imports("main", "github.com/spf13/cobra", "golang.org/x/sysfoo"),
		"cmd/weir/main_test.go":      imports("main", "github.com/rogpeppe/go-internal/testscript"),
		"dgram/conn.go":              imports("dgram", "golang.org/x/net/ipv4", "github.com/quic-go/quic-go"),
		"weirhttp/server.go":         imports("weirhttp", "github.com/quic-go/quic-go/http3", modulePath),
		"weirprom/collector.go":      imports("weirprom", "github.com/prometheus/client_golang/prometheus", "github.com/prometheus/common/expfmt"),
		"lab/rivals/rivals.go":       imports("rivals", "github.com/quic-go/quic-go", "example.com/any/thing"),
		"internal/share/ring.go":     imports("share", "pgregory.net/rapid"),
		"internal/lint/lint_test.go": imports("lint", "go/ast"),
	},
		"weir.go:5: . may not import golang.org/x/net/ipv4: see outside in internal/lint/outside_test.go",
		"weir_test.go:5: . may not import github.com/rogpeppe/go-internal/testscript: see outside in internal/lint/outside_test.go",
		"cmd/weir/main.go:4: cmd/weir may not import golang.org/x/sysfoo: see outside in internal/lint/outside_test.go",
		"dgram/conn.go:4: dgram may not import github.com/quic-go/quic-go: see outside in internal/lint/outside_test.go",
		"internal/share/ring.go:3: internal/share may not import pgregory.net/rapid: see outside in internal/lint/outside_test.go",
		"internal/sock/opt.go:3: internal/sock uses cgo",
		"internal/sock/opt.go:5: internal/sock may not import github.com/spf13/cobra: see outside in internal/lint/outside_test.go",
		"weirprom/collector.go:4: weirprom may not import github.com/prometheus/common/expfmt: see outside in internal/lint/outside_test.go",
	)
}

func checkOutside(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		if below(p.dir, "lab") {
			continue
		}
		for _, f := range p.files {
			for _, spec := range f.ast.Imports {
				imp := importPath(spec.Path.Value)
				switch {
				case imp == "C":
					out = append(out, t.at(spec, "%s uses cgo", p.dir))
				case !mayImport(p.dir, imp, f.test):
					out = append(out, t.at(spec, "%s may not import %s: see outside in internal/lint/outside_test.go", p.dir, imp))
				}
			}
		}
	}
	return out
}

func mayImport(dir, imp string, test bool) bool {
	if _, ours := inModule(imp); ours || isStd(imp) {
		return true
	}
	for _, row := range outside {
		if below(imp, row.module) {
			return matches(row.code, dir) || test && matches(row.tests, dir)
		}
	}
	return false
}

// isStd says whether the import path is one of the standard library: its first element has no dot.
func isStd(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

func matches(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		top, all := strings.CutSuffix(p, "/...")
		return p == "..." || p == dir || all && below(dir, top)
	})
}
