package lint

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden API texts in docs/api")

// TestAPI compares what each public package exports with its golden text, so that a change of the
// API shows in the change that makes it.
func TestAPI(t *testing.T) {
	tr, err := load(os.DirFS("../..")) // a tree of its own: apiText changes it
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.broken) > 0 {
		t.Fatalf("files that do not parse: %v", tr.broken)
	}
	texts := apiTexts(tr)
	if *update {
		for name, text := range texts {
			writeGolden(t, name, text)
		}
	}
	if _, ok := texts[golden(".")]; !ok {
		t.Error("no package in the module's root")
	}
	for _, f := range compareAPI(tr.fsys, texts) {
		t.Error(f)
	}
}

func writeGolden(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join("../..", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// golden names the file that holds a package's API.
func golden(dir string) string {
	if dir == "." {
		dir = path.Base(modulePath)
	}
	return "docs/api/" + strings.ReplaceAll(dir, "/", "_") + ".txt"
}

// apiTexts renders each public package, by the name of its golden file.
func apiTexts(t *tree) map[string]string {
	texts := map[string]string{}
	for _, p := range t.pkgs {
		if p.public() {
			texts[golden(p.dir)] = apiText(path.Join(modulePath, p.dir), p.code())
		}
	}
	return texts
}

// compareAPI returns a finding for each line too many or too few, and for each file without a package.
func compareAPI(fsys fs.FS, texts map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			out = append(out, name+": missing; make api writes it")
			continue
		}
		was, is := strings.Split(string(src), "\n"), strings.Split(texts[name], "\n")
		for _, line := range missing(was, is) {
			out = append(out, name+": no longer so (make api accepts it):\n-"+line)
		}
		for _, line := range missing(is, was) {
			out = append(out, name+": new (make api accepts it):\n+"+line)
		}
	}
	files, _ := fs.Glob(fsys, "docs/api/*.txt")
	for _, name := range files {
		if _, ok := texts[name]; !ok {
			out = append(out, name+": no public package has this API")
		}
	}
	return out
}

// missing returns the lines of a that b lacks.
func missing(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}

// TestAPIText shows each kind of item.
func TestAPIText(t *testing.T) {
	tr, err := load(mapFS(map[string]string{
		"a.go": `package weir
type Kind int
const (
	hidden Kind = 1 << iota
	Second
	Third
)
const Size, size = 64, 32
const Wait time.Duration = 2 * time.Millisecond
var ErrClosed, errOther = errors.New("closed"), errors.New("")
var ErrFull error = &OpError{}
type Handler func(c *Conn, b []byte) (n int, err error)
type Config struct {
	// Name is documented.
	Name, Net string
	*Bound
	inner
	OnData func(c *Conn, b []byte)
	n int
}
type Source interface { io.Closer; Name() string; source(); Each(yield func(k, v int) bool) }
type Number interface { ~int | ~int64 }
type Ring[T any, K comparable] struct { Head *T }
type Addr = netip.AddrPort
type inner struct { Public int }
func New(cfg Config, opts ...func(a, b int)) (l *Loop, err error) { return }
func Map[K comparable, V any](m map[K]V) iter.Seq2[K, V]
func (r *Ring[T, K]) Push(a, b T) {}
func (inner) Method() {}
func (l *Loop) close() {}
`,
		"a_linux.go": "//go:build linux\n\npackage weir\nfunc Only() {}",
		"a_test.go":  "package weir\nfunc TestX() {}",
	}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `pkg github.com/weirnet/weir [linux], func Only()
pkg github.com/weirnet/weir, const Second Kind = 1 << 1
pkg github.com/weirnet/weir, const Size = 64
pkg github.com/weirnet/weir, const Third Kind = 1 << 2
pkg github.com/weirnet/weir, const Wait time.Duration = 2 * time.Millisecond
pkg github.com/weirnet/weir, func Map[K comparable, V any](map[K]V) iter.Seq2[K, V]
pkg github.com/weirnet/weir, func New(Config, ...func(int, int)) (*Loop, error)
pkg github.com/weirnet/weir, method (*Ring[T, K]) Push(T, T)
pkg github.com/weirnet/weir, type Addr = netip.AddrPort
pkg github.com/weirnet/weir, type Config struct
pkg github.com/weirnet/weir, type Config struct, Name string
pkg github.com/weirnet/weir, type Config struct, Net string
pkg github.com/weirnet/weir, type Config struct, OnData func(*Conn, []byte)
pkg github.com/weirnet/weir, type Config struct, embedded *Bound
pkg github.com/weirnet/weir, type Handler func(*Conn, []byte) (int, error)
pkg github.com/weirnet/weir, type Kind int
pkg github.com/weirnet/weir, type Number interface
pkg github.com/weirnet/weir, type Number interface, embedded ~int | ~int64
pkg github.com/weirnet/weir, type Ring[T any, K comparable] struct
pkg github.com/weirnet/weir, type Ring[T any, K comparable] struct, Head *T
pkg github.com/weirnet/weir, type Source interface
pkg github.com/weirnet/weir, type Source interface, Each(func(int, int) bool)
pkg github.com/weirnet/weir, type Source interface, Name() string
pkg github.com/weirnet/weir, type Source interface, embedded io.Closer
pkg github.com/weirnet/weir, type Source interface, unexported methods
pkg github.com/weirnet/weir, var ErrClosed
pkg github.com/weirnet/weir, var ErrFull error
`
	got := apiTexts(tr)["docs/api/weir.txt"]
	if got != want {
		a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
		t.Errorf("too many:\n%s\ntoo few:\n%s", strings.Join(missing(a, b), "\n"), strings.Join(missing(b, a), "\n"))
	}
}

// TestCompareAPI shows each finding.
func TestCompareAPI(t *testing.T) {
	fsys := mapFS(map[string]string{
		"docs/api/weir.txt":  "func A()\nfunc B()\n",
		"docs/api/relay.txt": "func A()\n",
	})
	got := compareAPI(fsys, map[string]string{"docs/api/weir.txt": "func A()\nfunc C()\n", "docs/api/dgram.txt": ""})
	want := []string{
		"docs/api/dgram.txt: missing; make api writes it",
		"docs/api/weir.txt: no longer so (make api accepts it):\n-func B()",
		"docs/api/weir.txt: new (make api accepts it):\n+func C()",
		"docs/api/relay.txt: no public package has this API",
	}
	if !slices.Equal(got, want) {
		t.Errorf("findings %q\nwant %q", got, want)
	}
}
