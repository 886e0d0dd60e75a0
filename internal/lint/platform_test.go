package lint

import (
	"go/build/constraint"
	"path"
	"slices"
	"strings"
	"testing"
)

// systems and archs are the names that the go command reads in a file name or a constraint, and
// "unix", which it reads in a constraint only.
var (
	systems = strings.Fields("aix android darwin dragonfly freebsd illumos ios js linux netbsd openbsd plan9 solaris unix wasip1 windows")
	archs   = strings.Fields("386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x wasm")
)

// TestPlatformFiles holds "noun_<os>.go, the fallback always noun_other.go; every platform file has
// an explicit //go:build line (_unix is no suffix rule)".
func TestPlatformFiles(t *testing.T) {
	prove(t, checkPlatformFiles, map[string]string{
		"a/ok_linux.go":        "//go:build linux\n\npackage a",
		"a/ok_other.go":        "// Text.\n\n//go:build !linux\n\npackage a",
		"a/ok_bsd.go":          "//go:build darwin || freebsd\n\npackage a",
		"a/ok_perf_test.go":    "//go:build perf\n\npackage a",
		"a/ok_race.go":         "//go:build !race\n\npackage a",
		"a/other.go":           "package a",
		"a/linux.go":           "package a",
		"a/b_linux.go":         "package a",
		"a/b_linux_test.go":    "package a",
		"a/b_linux_arm64.go":   "// +build linux\n\npackage a",
		"a/b_other.go":         "package a",
		"a/b_unix.go":          "package a\n\n//go:build unix",
		"a/c_amd64.go":         "package a",
		"a/c_stub.go":          "//go:build !linux && !race\n\npackage a",
		"a/c_other.go":         "//go:build windows\n\npackage a",
		"a/c_fallback_test.go": "//go:build !unix\n\npackage a",
	},
		"a/b_linux.go: no //go:build line; a name's ending is easy to miss",
		"a/b_linux_arm64.go: no //go:build line; a name's ending is easy to miss",
		"a/b_linux_test.go: no //go:build line; a name's ending is easy to miss",
		"a/b_other.go: no //go:build line; a name's ending is easy to miss",
		"a/b_unix.go: no //go:build line; a name's ending is easy to miss",
		"a/c_amd64.go: no //go:build line; a name's ending is easy to miss",
		"a/c_fallback_test.go: built on every system but some (!unix): name it noun_other.go",
		"a/c_other.go: not built on an unknown system (windows), so it is no fallback",
		"a/c_stub.go: built on every system but some (!linux && !race): name it noun_other.go",
	)
}

func checkPlatformFiles(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		for _, f := range p.files {
			end, expr := ending(f.path), buildLine(f)
			switch {
			case expr == nil && (end == "other" || slices.Contains(systems, end) || slices.Contains(archs, end)):
				out = append(out, f.path+": no //go:build line; a name's ending is easy to miss")
			case expr == nil:
			case end == "other" && !onUnknownSystem(expr):
				out = append(out, f.path+": not built on an unknown system ("+expr.String()+"), so it is no fallback")
			case end != "other" && namesSystem(expr) && onUnknownSystem(expr):
				out = append(out, f.path+": built on every system but some ("+expr.String()+"): name it noun_other.go")
			}
		}
	}
	return out
}

// ending returns "linux" for "epoll_linux_test.go"; a name of one word has none.
func ending(p string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(path.Base(p), ".go"), "_test")
	if i := strings.LastIndexByte(name, '_'); i >= 0 {
		return name[i+1:]
	}
	return ""
}

// buildLine returns the file's //go:build constraint, nil if it has none above the package clause.
func buildLine(f *file) constraint.Expr {
	for _, g := range f.ast.Comments {
		for _, c := range g.List {
			if c.Pos() < f.ast.Package && constraint.IsGoBuild(c.Text) {
				if x, err := constraint.Parse(c.Text); err == nil {
					return x
				}
			}
		}
	}
	return nil
}

// onUnknownSystem says whether a system that the constraint does not name builds the file.
func onUnknownSystem(x constraint.Expr) bool {
	with := func(rest bool) bool {
		return x.Eval(func(tag string) bool { return rest && !slices.Contains(systems, tag) })
	}
	return with(true) || with(false)
}

func namesSystem(x constraint.Expr) bool {
	found := false
	x.Eval(func(tag string) bool {
		found = found || slices.Contains(systems, tag)
		return true
	})
	x.Eval(func(tag string) bool { // the other side of && and ||
		found = found || slices.Contains(systems, tag)
		return false
	})
	return found
}
