package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzServePath asks for any path, as it is and as a URL has it: nothing outside of the folder, and nothing hidden in
// it, is ever served.
func FuzzServePath(f *testing.F) {
	site := newSite(f, map[string]string{
		"a.txt": "a", "sub/b.txt": "b", ".hidden": secret, "sub/.hidden/c.txt": secret, "sub/deep/d.txt": "d",
	})
	for name, to := range map[string]string{
		"out": "../outside", "sub/out.txt": "../../outside/secret.txt", "in": "sub/deep", "absolute": filepath.Join(filepath.Dir(site.path), "outside"),
	} {
		if err := os.Symlink(to, filepath.Join(site.path, name)); err != nil {
			f.Fatal(err)
		}
	}
	for _, seed := range []string{
		"", "/", "/a.txt", "/sub/", "/sub", "/../outside/secret.txt", "/%2e%2e/outside/secret.txt", "/sub/..%2f..%2foutside/secret.txt",
		`/..\outside\secret.txt`, "/.hidden", "/%2ehidden", "/sub/.hidden/c.txt", "/out/secret.txt", "/sub/out.txt", "/in/d.txt", "/in/../.hidden",
		"/in/../../../outside/secret.txt", "/absolute/secret.txt", "/a.txt\x00", "/a.txt%00.html", "//outside/secret.txt", "/./.hidden", "/sub//b.txt",
		"/\xc0\xae\xc0\xae/outside/secret.txt", "/%252e%252e/", "/a.txt/..", "/sub/..", "*", "https://host/../outside/secret.txt",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		paths := []string{path, "/" + path}
		if u, err := url.ParseRequestURI(path); err == nil {
			paths = append(paths, u.Path)
		}
		for _, p := range paths {
			w := ask(site, http.MethodGet, p)
			body := w.Body.String()
			if strings.Contains(body, secret) || strings.Contains(body, "hidden") || strings.Contains(body, "secret") {
				t.Errorf("%q: %d %s", p, w.Code, body)
			}
			if to := w.Header().Get("Location"); to != "" && !strings.HasPrefix(to, "./") {
				t.Errorf("%q leads to %q", p, to)
			}
			if w.Code != 200 && w.Code != 301 && w.Code != 404 {
				t.Errorf("%q: %d", p, w.Code)
			}
		}
	})
}
