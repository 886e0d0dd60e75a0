package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// modulePath is the import path of the module's root.
const modulePath = "github.com/weirnet/weir"

// A tree is a module as the rules see it: every Go file parsed, whatever its platform, and every
// text file. Modules nested in it (lab, tools) are part of the tree.
type tree struct {
	fsys   fs.FS
	fset   *token.FileSet
	pkgs   []*pkg   // sorted by directory
	texts  []text   // sorted by path, Go files included
	broken []string // files that do not parse
}

// A pkg is the Go files of one directory, external tests included.
type pkg struct {
	dir   string // slash-separated, "." for the root
	files []*file
}

type file struct {
	path string
	ast  *ast.File
	test bool
}

type text struct {
	path string
	src  []byte
}

// load reads what is below fsys, except hidden folders (but .ci), vendor, testdata and "_" folders.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fsys: fsys, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipDir(p):
			return fs.SkipDir
		case p == ".git", !d.Type().IsRegular(), !isText(p): // .git is a file in a linked work tree
			return nil
		}
		src, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		t.add(p, src)
		return nil
	})
	return t, err
}

func skipDir(p string) bool {
	base := path.Base(p)
	if p == "." || p == ".ci" {
		return false
	}
	return base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_'
}

// isText says whether the rules on text read the file; go.sum is made of hashes.
func isText(p string) bool {
	switch path.Ext(p) {
	case ".go", ".md", ".mod", ".txt", ".txtar", ".sh", ".yml", ".yaml", ".json":
		return true
	case "", path.Base(p): // no extension: Makefile, LICENSE, .gitignore
		return true
	}
	return false
}

func (t *tree) add(p string, src []byte) {
	if bytes.IndexByte(src, 0) >= 0 {
		return
	}
	t.texts = append(t.texts, text{p, src})
	if path.Ext(p) != ".go" {
		return
	}
	f, err := parser.ParseFile(t.fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.broken = append(t.broken, err.Error())
		return
	}
	dir := path.Dir(p)
	i, found := slices.BinarySearchFunc(t.pkgs, dir, func(k *pkg, dir string) int { return strings.Compare(k.dir, dir) })
	if !found {
		t.pkgs = slices.Insert(t.pkgs, i, &pkg{dir: dir})
	}
	t.pkgs[i].files = append(t.pkgs[i].files, &file{path: p, ast: f, test: strings.HasSuffix(p, "_test.go")})
}

// at is a finding: where, and what is wrong.
func (t *tree) at(n ast.Node, format string, args ...any) string {
	p := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}

// code returns the files that are not tests.
func (p *pkg) code() []*file {
	return slices.DeleteFunc(slices.Clone(p.files), func(f *file) bool { return f.test })
}

// name is the package's name, "" if it has tests only.
func (p *pkg) name() string {
	for _, f := range p.code() {
		return f.ast.Name.Name
	}
	return ""
}

// public says whether users of the module can import the package.
func (p *pkg) public() bool {
	name := p.name()
	return name != "" && name != "main" && !below(p.dir, "lab") && !below(p.dir, "tools") &&
		!slices.Contains(strings.Split(p.dir, "/"), "internal")
}

// below says whether dir is top or a folder in it.
func below(dir, top string) bool {
	return dir == top || strings.HasPrefix(dir, top+"/")
}
