package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// allowedVars are package-level variables that the rule below would refuse, each with its reason.
// The key is directory.name.
var allowedVars = map[string]string{}

// TestNoMutableGlobals holds "no mutable globals": a library package has no exported variable but
// errors, and an unexported one is a table, an error or a value that is made once and never written.
func TestNoMutableGlobals(t *testing.T) {
	prove(t, checkVars, map[string]string{
		"a.go": `package a
var ErrClosed = errors.New("closed")
var ErrOther error = &OpError{Op: "read"}
var _ io.Reader = (*t)(nil)
var table, other = map[int]string{1: "one"}, [...]int{1, 2}
var pool = sync.Pool{New: func() any { return new(t) }}
var addr = netip.MustParseAddr("::1")
var order = binary.NativeEndian
var words, squares = strings.Fields("a b"), func() (t [9]int) { return t }()
//go:embed a.txt
var text string
var Debug = false
var Table = []int{1}
var Error = errors.New("x")
var count int
var (
	started = time.Now()
	hook = func() {}
	n, m = 1, []int{2}
)
var none netip.AddrPort
var zero, last netip.Addr
var seen = map[string]bool{}
func f() { var local int; local++; last = zero; table := 1; table = 2 }
func g() { seen["a"], other = true, nil }
`,
		"b.go":             "package a\nvar pair = point{1, 2}\nfunc h() { pair.x++ }",
		"a_test.go":        "package a\nvar Hook func()",
		"cmd/weir/main.go": "package main\nvar version = \"dev\"",
		"lab/run/run.go":   "package run\nvar N int",
	},
		"a.go:5: variable other is state shared by all loops: make it a field, or give the reason in allowedVars",
		"a.go:12: exported variable Debug: only errors named Err… may be one, as any importer can change it",
		"a.go:13: exported variable Table: only errors named Err… may be one, as any importer can change it",
		"a.go:14: exported variable Error: only errors named Err… may be one, as any importer can change it",
		"a.go:15: variable count is state shared by all loops: make it a field, or give the reason in allowedVars",
		"a.go:17: variable started is state shared by all loops: make it a field, or give the reason in allowedVars",
		"a.go:18: variable hook is state shared by all loops: make it a field, or give the reason in allowedVars",
		"a.go:19: variable n is state shared by all loops: make it a field, or give the reason in allowedVars",
		"a.go:22: variable last is state shared by all loops: make it a field, or give the reason in allowedVars",
		"a.go:23: variable seen is state shared by all loops: make it a field, or give the reason in allowedVars",
		"b.go:2: variable pair is state shared by all loops: make it a field, or give the reason in allowedVars",
	)
}

func checkVars(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		if p.name() == "main" || below(p.dir, "lab") {
			continue
		}
		wr := written(p)
		for _, f := range p.code() {
			for _, d := range f.ast.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
					out = append(out, checkVarDecl(t, p, g, wr)...)
				}
			}
		}
	}
	return out
}

func checkVarDecl(t *tree, p *pkg, g *ast.GenDecl, written map[string]bool) []string {
	var out []string
	for _, s := range g.Specs {
		s := s.(*ast.ValueSpec)
		for i, n := range s.Names {
			switch {
			case n.Name == "_", allowedVars[p.dir+"."+n.Name] != "":
			case n.IsExported() && !isErrorName(n.Name):
				out = append(out, t.at(n, "exported variable %s: only errors named Err… may be one, as any importer can change it", n.Name))
			case n.IsExported(), !written[n.Name] && (isEmbedded(g, s) || isZero(s) || i < len(s.Values) && isFixed(s.Values[i])):
			default:
				out = append(out, t.at(n, "variable %s is state shared by all loops: make it a field, or give the reason in allowedVars", n.Name))
			}
		}
	}
	return out
}

// isErrorName accepts ErrClosed, not Error.
func isErrorName(name string) bool {
	rest, ok := strings.CutPrefix(name, "Err")
	return ok && ast.IsExported(rest)
}

func isEmbedded(g *ast.GenDecl, s *ast.ValueSpec) bool {
	for _, c := range []*ast.CommentGroup{g.Doc, s.Doc} {
		if c != nil && strings.HasPrefix(c.List[len(c.List)-1].Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// written returns the names that the package's functions assign to, elements and fields included,
// except where the function declares the name itself.
func written(p *pkg) map[string]bool {
	names := map[string]bool{}
	for _, f := range p.code() {
		for _, d := range f.ast.Decls {
			local := declared(d)
			for _, id := range assigned(d) {
				names[id.Name] = names[id.Name] || !local[id.Name]
			}
		}
	}
	return names
}

// assigned returns the variables on the left of =, += and ++ in n.
func assigned(n ast.Node) []*ast.Ident {
	var ids []*ast.Ident
	ast.Inspect(n, func(n ast.Node) bool {
		var left []ast.Expr
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				left = n.Lhs
			}
		case *ast.IncDecStmt:
			left = []ast.Expr{n.X}
		}
		for _, x := range left {
			if id := rootName(x); id != nil {
				ids = append(ids, id)
			}
		}
		return true
	})
	return ids
}

// declared returns the names that a function gives to parameters and variables of its own.
func declared(d ast.Decl) map[string]bool {
	names := map[string]bool{}
	fn, ok := d.(*ast.FuncDecl)
	if !ok {
		return names
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		var ids []*ast.Ident
		switch n := n.(type) {
		case *ast.Field:
			ids = n.Names
		case *ast.ValueSpec:
			ids = n.Names
		case *ast.AssignStmt:
			for _, x := range n.Lhs {
				if id, ok := x.(*ast.Ident); ok && n.Tok == token.DEFINE {
					ids = append(ids, id)
				}
			}
		case *ast.RangeStmt:
			for _, x := range []ast.Expr{n.Key, n.Value} {
				if id, ok := x.(*ast.Ident); ok && n.Tok == token.DEFINE {
					ids = append(ids, id)
				}
			}
		}
		for _, id := range ids {
			names[id.Name] = true
		}
		return true
	})
	return names
}

// rootName returns v for v, v.x, v[i], *v.
func rootName(x ast.Expr) *ast.Ident {
	switch x := x.(type) {
	case *ast.Ident:
		return x
	case *ast.SelectorExpr:
		return rootName(x.X)
	case *ast.IndexExpr:
		return rootName(x.X)
	case *ast.StarExpr:
		return rootName(x.X)
	case *ast.ParenExpr:
		return rootName(x.X)
	}
	return nil
}

// zeroTypes are types whose zero value is worth a name, and which no method changes.
var zeroTypes = strings.Fields("netip.Addr netip.AddrPort netip.Prefix time.Time")

func isZero(s *ast.ValueSpec) bool {
	return len(s.Values) == 0 && slices.Contains(zeroTypes, types.ExprString(s.Type))
}

// fixedCalls are functions whose result is a value to keep; so are those named Must…
var fixedCalls = strings.Fields("errors.New errors.Join fmt.Errorf strings.Fields strings.NewReplacer sync.OnceValue sync.OnceValues netip.AddrFrom4 netip.AddrFrom16 netip.IPv6Unspecified netip.IPv4Unspecified")

// isFixed says whether a variable with this first value is used as a constant: a composite literal,
// an error, another package's value.
func isFixed(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.CompositeLit:
		return true
	case *ast.UnaryExpr:
		_, ok := x.X.(*ast.CompositeLit)
		return ok && x.Op == token.AND
	case *ast.SelectorExpr:
		return true
	case *ast.CallExpr:
		switch fn := x.Fun.(type) {
		case *ast.FuncLit: // a table that is worked out
			return true
		case *ast.SelectorExpr:
			pkg, _ := fn.X.(*ast.Ident)
			return strings.HasPrefix(fn.Sel.Name, "Must") || pkg != nil && slices.Contains(fixedCalls, pkg.Name+"."+fn.Sel.Name)
		}
	}
	return false
}
