package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secret is what stands in files that must not be served, whatever asks for them.
const secret = "secret of another folder"

// newSite makes a folder of these files; names that end in a slash are folders. Beside it, in its parent, is a folder
// "outside" with a secret.
func newSite(t testing.TB, files map[string]string) *folder {
	t.Helper()
	parent := t.TempDir()
	dir := filepath.Join(parent, "site")
	put(t, filepath.Join(parent, "outside", "secret.txt"), secret)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		put(t, filepath.Join(dir, name)+name[len(strings.TrimSuffix(name, "/")):], text)
	}
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return f
}

func put(t testing.TB, path, text string) {
	t.Helper()
	dir := path
	if !strings.HasSuffix(path, "/") {
		dir = filepath.Dir(path)
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil && dir != path {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ask has the handler answer; the header is of pairs. The path is what the URL decodes to.
func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := newRequest(path)
	r.Method = method
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return record(h, r)
}

func newRequest(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.URL.Path = path
	return r
}

func record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
