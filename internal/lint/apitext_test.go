package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// apiText renders what a package exports, one sorted line an item, in the manner of Go's api/*.txt.
// A constraint in brackets marks what some platforms lack. Parameter names, comments and unexported
// fields are no part of it. It changes the syntax trees that it is given.
func apiText(imp string, files []*file) string {
	var lines []string
	for _, f := range files {
		head := "pkg " + imp
		if x := buildLine(f); x != nil {
			head += " [" + x.String() + "]"
		}
		ast.Inspect(f.ast, unname)
		for _, d := range f.ast.Decls {
			for _, item := range declItems(d) {
				lines = append(lines, head+", "+item+"\n")
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

func declItems(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return funcItem(d)
	case *ast.GenDecl:
		switch d.Tok {
		case token.CONST:
			return constItems(d)
		case token.VAR:
			return varItems(d)
		case token.TYPE:
			var items []string
			for _, s := range d.Specs {
				if s := s.(*ast.TypeSpec); s.Name.IsExported() {
					items = append(items, typeItems(s)...)
				}
			}
			return items
		}
	}
	return nil
}

func funcItem(d *ast.FuncDecl) []string {
	recv := receiver(d)
	switch {
	case !d.Name.IsExported() || recv != "" && !ast.IsExported(recv):
		return nil
	case recv != "":
		return []string{fmt.Sprintf("method (%s) %s%s", types.ExprString(d.Recv.List[0].Type), d.Name.Name, signature(d.Type))}
	}
	return []string{"func " + d.Name.Name + params(d.Type.TypeParams) + signature(d.Type)}
}

// iota as a word, to be replaced by its value: the order of constants is part of what they are.
var iota_ = regexp.MustCompile(`\biota\b`)

func constItems(d *ast.GenDecl) []string {
	var (
		items []string
		last  *ast.ValueSpec // whose type and values a bare name repeats
	)
	for i, s := range d.Specs {
		s := s.(*ast.ValueSpec)
		if last == nil || s.Type != nil || len(s.Values) > 0 {
			last = s
		}
		for j, n := range s.Names {
			if !n.IsExported() {
				continue
			}
			item := "const " + n.Name + typeSuffix(last.Type)
			if j < len(last.Values) {
				item += " = " + iota_.ReplaceAllString(types.ExprString(last.Values[j]), fmt.Sprint(i))
			}
			items = append(items, item)
		}
	}
	return items
}

func varItems(d *ast.GenDecl) []string {
	var items []string
	for _, s := range d.Specs {
		s := s.(*ast.ValueSpec)
		for _, n := range s.Names {
			if n.IsExported() {
				items = append(items, "var "+n.Name+typeSuffix(s.Type))
			}
		}
	}
	return items
}

func typeSuffix(x ast.Expr) string {
	if x == nil {
		return ""
	}
	return " " + types.ExprString(x)
}

func typeItems(s *ast.TypeSpec) []string {
	head := "type " + s.Name.Name + params(s.TypeParams)
	if s.Assign.IsValid() {
		return []string{head + " = " + types.ExprString(s.Type)}
	}
	switch x := s.Type.(type) {
	case *ast.StructType:
		return append([]string{head + " struct"}, fieldItems(head+" struct", x.Fields)...)
	case *ast.InterfaceType:
		return append([]string{head + " interface"}, fieldItems(head+" interface", x.Methods)...)
	}
	return []string{head + " " + types.ExprString(s.Type)}
}

// fieldItems lists exported fields or methods; that an interface has others is told, as nobody else
// can implement it.
func fieldItems(head string, fields *ast.FieldList) []string {
	var items []string
	for _, f := range fields.List {
		fn, method := f.Type.(*ast.FuncType)
		method = method && strings.HasSuffix(head, "interface")
		for _, n := range f.Names {
			switch {
			case method && n.IsExported():
				items = append(items, head+", "+n.Name+signature(fn))
			case method:
				items = append(items, head+", unexported methods")
			case n.IsExported():
				items = append(items, head+", "+n.Name+" "+types.ExprString(f.Type))
			}
		}
		if len(f.Names) == 0 && ast.IsExported(lastName(f.Type)) || isUnion(f.Type) {
			items = append(items, head+", embedded "+types.ExprString(f.Type))
		}
	}
	return items
}

// isUnion says whether an interface's element is a set of types.
func isUnion(x ast.Expr) bool {
	switch x.(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
		return true
	}
	return false
}

// lastName returns the name that an embedded type gives its field.
func lastName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.StarExpr:
		return lastName(x.X)
	case *ast.IndexExpr:
		return lastName(x.X)
	case *ast.IndexListExpr:
		return lastName(x.X)
	}
	return ""
}

func signature(f *ast.FuncType) string {
	return strings.TrimPrefix(types.ExprString(&ast.FuncType{Params: f.Params, Results: f.Results}), "func")
}

// params renders type parameters, "" if there are none.
func params(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var s []string
	for _, f := range list.List {
		for _, n := range f.Names {
			s = append(s, n.Name+" "+types.ExprString(f.Type))
		}
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// unname takes the names from the parameters and results of a function type: one field for each.
func unname(n ast.Node) bool {
	if f, ok := n.(*ast.FuncType); ok {
		for _, list := range []*ast.FieldList{f.Params, f.Results} {
			if list == nil {
				continue
			}
			var bare []*ast.Field
			for _, field := range list.List {
				for range max(1, len(field.Names)) {
					bare = append(bare, &ast.Field{Type: field.Type})
				}
			}
			list.List = bare
		}
	}
	return true
}
