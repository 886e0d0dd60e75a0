package lint

import (
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// vague are names that say nothing about what is inside.
var vague = strings.Fields("base common helper helpers misc pkg shared util utils")

// TestPackageNames holds "one lower-case word, never the name of a std package or a dependency".
func TestPackageNames(t *testing.T) {
	list, err := exec.Command("go", "list", "std").Output()
	if err != nil {
		t.Fatalf("go list std: %v", err)
	}
	taken := stdNames(string(list))
	prove(t, func(t *tree) []string { return checkNames(t, taken) }, map[string]string{
		"weir.go":               imports("weir", "golang.org/x/sys/unix", "example.com/queue/v2"),
		"weir_test.go":          "package weir_test",
		"cmd/weir/main.go":      "package main",
		"internal/poll/poll.go": "package poll", // std has internal/poll, which nobody imports
		"http/server.go":        "package http",
		"lab/sort/main.go":      "package main",
		"net2/net.go":           "package net",
		"pkg/flow/flow.go":      "package flow",
		"queue/queue.go":        "package queue",
		"twoWords/a.go":         "package twoWords",
		"unix/a.go":             "package unix",
		"internal/util/a.go":    "package util",
	},
		"http: http is the name of a std package",
		"internal/util: util says nothing about what is inside",
		"lab/sort: sort is the name of a std package",
		"net2: net is the name of a std package",
		"pkg/flow: pkg says nothing about what is inside",
		"queue: queue is the name of example.com/queue/v2",
		"twoWords: twoWords is not one lower-case word",
		"unix: unix is the name of golang.org/x/sys/unix",
	)
}

func checkNames(t *tree, std map[string]bool) []string {
	deps := dependencyNames(t)
	var out []string
	for _, p := range t.pkgs {
		for _, name := range namesOf(p) {
			switch {
			case slices.Contains(vague, name):
				out = append(out, p.dir+": "+name+" says nothing about what is inside")
			case name != path.Base(p.dir) && name != p.name(): // a folder above: not a package's name
			case name != strings.ToLower(name) || strings.ContainsAny(name, "_-"):
				out = append(out, p.dir+": "+name+" is not one lower-case word")
			case std[name]:
				out = append(out, p.dir+": "+name+" is the name of a std package")
			case deps[name] != "":
				out = append(out, p.dir+": "+name+" is the name of "+deps[name])
			}
		}
	}
	return out
}

// namesOf returns the package's name and the elements of its directory, each once.
func namesOf(p *pkg) []string {
	var names []string
	for _, n := range append(strings.Split(p.dir, "/"), p.name()) {
		if n != "" && n != "." && n != "main" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// stdNames returns the names of the packages in std that others can import.
func stdNames(list string) map[string]bool {
	names := map[string]bool{}
	for p := range strings.FieldsSeq(list) {
		elems := strings.Split(p, "/")
		if !slices.Contains(elems, "internal") && elems[0] != "vendor" {
			names[path.Base(p)] = true
		}
	}
	return names
}

// dependencyNames maps the last word of each import path from another module to that path.
func dependencyNames(t *tree) map[string]string {
	names := map[string]string{}
	for _, p := range t.pkgs {
		for _, f := range p.files {
			for _, spec := range f.ast.Imports {
				imp := importPath(spec.Path.Value)
				if _, ours := inModule(imp); !ours && !isStd(imp) {
					names[lastWord(imp)] = imp
				}
			}
		}
	}
	return names
}

// lastWord returns "queue" for example.com/queue/v2.
func lastWord(imp string) string {
	dir, base := path.Split(imp)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		return path.Base(dir)
	}
	return base
}
