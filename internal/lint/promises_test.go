package lint

import (
	"fmt"
	"go/ast"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// claims are tables whose rows name the tests that prove them in the last column.
var claims = []claimTable{
	{"docs/DESIGN.md", "promises", regexp.MustCompile(`^\|\s*(P\d+)\s*\|`), "P"},
	{"docs/FAULTS.md", "faults", regexp.MustCompile(`^\|\s*(F\d+)\s*\|`), "F"},
}

type claimTable struct {
	path, of string
	row      *regexp.Regexp
	letter   string
}

const designPath = "docs/DESIGN.md"

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)\\w+)(?:/[^`]*)?`")
)

// TestPromises holds "each promise names its test": the last column of each row | P1 | … | names in
// backquotes functions of test files, and the rows are P1, P2, …
func TestPromises(t *testing.T) {
	bad := map[string]string{
		"a_test.go": "package a\nfunc TestShare() {}\nfunc (t) TestMethod() {}",
		"b/b.go":    "package b\nfunc TestNotInATest() {}",
		designPath: "# Design\n\n| # | promise | tests |\n|---|---|---|\n" +
			"| P1 | **Bounded.** As `TestElsewhere` is not the column. | `TestShare`, `TestShare/quick` |\n" +
			"| P2 | **No ceiling.** | `TestGone`, `FuzzGone` |\n" +
			"| P3 | **No loss.** | |\n" +
			"| P5 | **No spin.** | `TestMethod` and `TestNotInATest` |\n",
	}
	prove(t, checkPromises, bad,
		"docs/DESIGN.md:6: P2 names TestGone, which no test file has",
		"docs/DESIGN.md:6: P2 names FuzzGone, which no test file has",
		"docs/DESIGN.md:7: P3 names no test in its last column",
		"docs/DESIGN.md:8: P5 where P4 was due",
		"docs/DESIGN.md:8: P5 names TestMethod, which no test file has",
		"docs/DESIGN.md:8: P5 names TestNotInATest, which no test file has",
	)
	t.Run("no rows", func(t *testing.T) {
		expect(t, checkPromises, map[string]string{designPath: "| P | x |"},
			"docs/DESIGN.md: no table of promises: rows of the form | P1 | … | `TestName` |")
	})
	t.Run("no file", func(t *testing.T) {
		expect(t, checkPromises, map[string]string{"a.go": "package a"},
			"docs/DESIGN.md: missing: it states the promises, and the test of each")
	})
}

func checkPromises(t *tree) []string { return claims[0].check(t) }

// TestFaults holds the same for the table of faults that others had.
func TestFaults(t *testing.T) {
	prove(t, checkFaults, map[string]string{"docs/FAULTS.md": "| F1 | a | b | `TestGone` |\n"},
		"docs/FAULTS.md:1: F1 names TestGone, which no test file has")
}

func checkFaults(t *tree) []string { return claims[1].check(t) }

func (c claimTable) check(t *tree) []string {
	src, err := fs.ReadFile(t.fsys, c.path)
	if err != nil {
		return []string{c.path + ": missing: it states the " + c.of + ", and the test of each"}
	}
	var out []string
	rows, tests := 0, testFuncs(t)
	for i, line := range strings.Split(string(src), "\n") {
		m := c.row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		add := func(format string, args ...any) {
			out = append(out, fmt.Sprintf("%s:%d: %s ", c.path, i+1, m[1])+fmt.Sprintf(format, args...))
		}
		if rows++; m[1] != fmt.Sprintf("%s%d", c.letter, rows) {
			add("where %s%d was due", c.letter, rows)
		}
		names := testName.FindAllStringSubmatch(lastColumn(line), -1)
		if len(names) == 0 {
			add("names no test in its last column")
		}
		for _, n := range names {
			if !tests[n[1]] {
				add("names %s, which no test file has", n[1])
			}
		}
	}
	if rows == 0 {
		out = append(out, fmt.Sprintf("%s: no table of %s: rows of the form | %s1 | … | `TestName` |", c.path, c.of, c.letter))
	}
	return out
}

func lastColumn(row string) string {
	row = strings.TrimSuffix(strings.TrimSpace(row), "|")
	return row[strings.LastIndexByte(row, '|')+1:]
}

// testFuncs returns the names of the functions in test files, whatever their build constraint.
func testFuncs(t *tree) map[string]bool {
	names := map[string]bool{}
	for _, p := range t.pkgs {
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && f.test && fn.Recv == nil {
					names[fn.Name.Name] = true
				}
			}
		}
	}
	return names
}
