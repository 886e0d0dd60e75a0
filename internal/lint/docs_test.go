package lint

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// TestPackageDocs wants one package comment for each package, in a file that every platform builds.
func TestPackageDocs(t *testing.T) {
	prove(t, checkPackageDocs, map[string]string{
		"a/a.go":           "// Package a does it.\npackage a",
		"a/b.go":           "package a",
		"b/b.go":           "package b",
		"b/b_test.go":      "// Package b is described in its test only.\npackage b",
		"c/c.go":           "// Something about c.\npackage c",
		"cmd/weir/main.go": "// Weir runs a loop.\npackage main",
		"cmd/x/main.go":    "// This runs a loop.\npackage main",
		"d/d.go":           "// Package d does it.\npackage d",
		"d/doc.go":         "// Package d does it twice.\npackage d",
		"e/e_linux.go":     "// Package e does it.\n\n//go:build linux\n\npackage e",
		"f/f_linux.go":     "//go:build linux\n\n// Package f does it.\npackage f",
		"g/g_test.go":      "package g",
	},
		"b: no package comment",
		`c/c.go:2: the package comment does not begin with "Package c "`,
		`cmd/x/main.go:2: the package comment does not begin with "X "`,
		"d/doc.go:2: a second package comment",
		"e: no package comment",
		"f/f_linux.go:4: the package comment is in a file for some platforms only",
	)
}

func checkPackageDocs(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		seen := 0
		for _, f := range p.code() {
			doc := f.ast.Doc.Text()
			if doc == "" {
				continue
			}
			seen++
			first := "Package " + p.name() + " "
			if p.name() == "main" {
				base := path.Base(p.dir)
				first = strings.ToUpper(base[:1]) + base[1:] + " "
			}
			switch {
			case !strings.HasPrefix(doc, first):
				out = append(out, t.at(f.ast, "the package comment does not begin with %q", first))
			case seen > 1:
				out = append(out, t.at(f.ast, "a second package comment"))
			case buildLine(f) != nil:
				out = append(out, t.at(f.ast, "the package comment is in a file for some platforms only"))
			}
		}
		if seen == 0 && p.name() != "" {
			out = append(out, p.dir+": no package comment")
		}
	}
	return out
}

// TestExportedDocs wants a comment that says something on each exported name of a public package.
func TestExportedDocs(t *testing.T) {
	prove(t, checkExportedDocs, map[string]string{
		"weir.go": `package weir
type Loop struct{}
// Conn is one stream.
type Conn struct{ Field int }
func (*Conn) Close() {}
// Open opens it.
func (*Conn) Open() {}
func (*hidden) Name() {}
func (Loop) Error() string { return "" }
type hidden struct{}
// Run .
func Run() {}
// These are the kinds of source.
const ( A = iota; B )
const (
	C = 1
	D = 2 // D is the largest of them.
)
// Turn is what the loop does
type Turn int
`,
		"weir_test.go":        "package weir\nfunc TestX() {}",
		"internal/sys/sys.go": "package sys\nfunc Exported() {}",
	},
		"weir.go:2: Loop has no doc comment",
		"weir.go:5: Conn.Close has no doc comment",
		"weir.go:12: the doc comment of Run says nothing",
		"weir.go:16: C has no doc comment",
		"weir.go:20: the doc comment of Turn is no sentence: it ends without a full stop",
	)
}

func checkExportedDocs(t *tree) []string {
	var out []string
	see := func(n ast.Node, name string, docs ...*ast.CommentGroup) {
		text := ""
		for _, d := range docs {
			text += d.Text()
		}
		switch text = strings.TrimSpace(text); {
		case text == "":
			out = append(out, t.at(n, "%s has no doc comment", name))
		case len(strings.Fields(text)) < 3:
			out = append(out, t.at(n, "the doc comment of %s says nothing", name))
		case !strings.ContainsAny(text, ".:"):
			out = append(out, t.at(n, "the doc comment of %s is no sentence: it ends without a full stop", name))
		}
	}
	for _, p := range t.pkgs {
		if !p.public() {
			continue
		}
		for _, f := range p.code() {
			for _, d := range f.ast.Decls {
				seeDecl(d, see)
			}
		}
	}
	return out
}

// wellKnown are methods that std's interfaces describe.
var wellKnown = map[string]bool{"Error": true, "Is": true, "String": true, "Unwrap": true}

func seeDecl(d ast.Decl, see func(ast.Node, string, ...*ast.CommentGroup)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		recv := receiver(d)
		switch {
		case !d.Name.IsExported() || recv != "" && (!ast.IsExported(recv) || wellKnown[d.Name.Name]):
		case recv != "":
			see(d, recv+"."+d.Name.Name, d.Doc)
		default:
			see(d, d.Name.Name, d.Doc)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					see(s, s.Name.Name, d.Doc, s.Doc, s.Comment)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() {
						see(n, n.Name, d.Doc, s.Doc, s.Comment)
					}
				}
			}
		}
	}
}

// receiver returns the name of the method's type, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	x := d.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.ParenExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.Name
		default:
			return ""
		}
	}
}
