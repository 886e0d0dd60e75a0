package lint

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// A rule returns its findings in the tree, in the tree's order.
type rule func(*tree) []string

// module parses this module once.
var module = sync.OnceValues(func() (*tree, error) { return load(os.DirFS("../..")) })

// prove shows that the rule fails on bad input, with exactly the findings in want, and that this
// module has none.
func prove(t *testing.T, check rule, bad map[string]string, want ...string) {
	t.Helper()
	t.Run("bad input", func(t *testing.T) { expect(t, check, bad, want...) })
	t.Run("module", func(t *testing.T) {
		tr, err := module()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range check(tr) {
			t.Error(f)
		}
	})
}

// expect runs the rule on files given as text.
func expect(t *testing.T, check rule, files map[string]string, want ...string) {
	t.Helper()
	tr, err := load(mapFS(files))
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.broken) > 0 {
		t.Fatalf("the test's input does not parse: %v", tr.broken)
	}
	if got := check(tr); !slices.Equal(got, want) {
		t.Errorf("findings:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func mapFS(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for p, src := range files {
		m[p] = &fstest.MapFile{Data: []byte(src)}
	}
	return m
}

// TestParse is the ground of all other rules: a file that does not parse is seen by none of them.
func TestParse(t *testing.T) {
	t.Run("bad input", func(t *testing.T) {
		tr, err := load(mapFS(map[string]string{"a.go": "package a\nfunc {"}))
		if err != nil {
			t.Fatal(err)
		}
		if len(tr.broken) != 1 || !strings.HasPrefix(tr.broken[0], "a.go:2:") {
			t.Errorf("broken = %q, want a.go:2", tr.broken)
		}
	})
	t.Run("module", func(t *testing.T) {
		tr, err := module()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range tr.broken {
			t.Error(f)
		}
	})
}

// TestSkips names what is not read: what belongs to tools, to tests, and what is no text.
func TestSkips(t *testing.T) {
	tr, err := load(mapFS(map[string]string{
		".ci/run":          "#!/bin/sh",
		".git/config":      "x",
		"Makefile":         "all:",
		"a.go":             "package a",
		"a/testdata/b.go":  "package b",
		"bin":              "\x00\x01",
		"go.sum":           "x",
		"vendor/c/c.go":    "package c",
		"_old/d.go":        "package d",
		"internal/e/ee.go": "package e",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range tr.texts {
		got = append(got, x.path)
	}
	want := []string{".ci/run", "Makefile", "a.go", "internal/e/ee.go"}
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}
