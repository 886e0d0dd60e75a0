package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestServeFolder(t *testing.T) {
	t.Parallel()
	f := newSite(t, map[string]string{
		"a.txt": "a", "empty": "", "with index/index.html": "<p>index", "sub/b.bin": "\x00b", "index odd/index.html/": "",
		".hidden": secret, ".git/config": secret, "sub/.env": secret, "..x": secret, "sub/c.html": "<p>c", "%41.txt": "percent",
	})
	for _, c := range []struct {
		path   string
		status int
		body   string // what it contains
	}{
		{"/", 200, `href="./a.txt"`},
		{"/a.txt", 200, "a"},
		{"/empty", 200, ""},
		{"/%41.txt", 200, "percent"},
		{"/with index/", 200, "<p>index"},
		{"/with index/index.html", 200, "<p>index"},
		{"/index odd/", 200, `href="./index.html/"`},
		{"/sub/", 200, `href="./b.bin"`},
		{"/sub/b.bin", 200, "\x00b"},
		{"/sub", 301, ""},

		{"/none", 404, ""},
		{"/none/", 404, ""},
		{"/a.txt/", 404, ""},
		{"/a.txt/b", 404, ""},
		{"//", 404, ""},
		{"//sub/", 404, ""},
		{"/sub//b.bin", 404, ""},
		{"", 404, ""},
		{"*", 404, ""},
		{"a.txt", 404, ""},
		{"/" + strings.Repeat("x", 5000), 404, ""},
		{strings.Repeat("/x", 5000), 404, ""},

		{"/.", 404, ""},
		{"/./a.txt", 404, ""},
		{"/..", 404, ""},
		{"/../", 404, ""},
		{"/../outside/secret.txt", 404, ""},
		{"/sub/../../outside/secret.txt", 404, ""},
		{"/sub/../a.txt", 404, ""},
		{`/..\outside\secret.txt`, 404, ""},
		{`/sub\b.bin`, 404, ""},
		{"/a.txt\x00", 404, ""},
		{"/\x00", 404, ""},
		{"/.hidden", 404, ""},
		{"/.git/config", 404, ""},
		{"/.git/", 404, ""},
		{"/sub/.env", 404, ""},
		{"/..x", 404, ""},
		{"/...", 404, ""},
	} {
		w := ask(f, http.MethodGet, c.path)
		body := w.Body.String()
		if w.Code != c.status || !strings.Contains(body, c.body) || strings.Contains(body, secret) {
			t.Errorf("%.40q: %d %q, want %d %q", c.path, w.Code, body, c.status, c.body)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%.40q: no nosniff", c.path)
		}
		head := ask(f, http.MethodHead, c.path)
		if head.Code != c.status || head.Header().Get("Content-Length") != w.Header().Get("Content-Length") {
			t.Errorf("HEAD %.40q: %d %v, want %d %v", c.path, head.Code, head.Header(), w.Code, w.Header())
		}
		if c.status == 200 && head.Body.Len() > 0 {
			t.Errorf("HEAD %.40q has a body", c.path)
		}
	}
	list := ask(f, http.MethodGet, "/").Body.String()
	for _, name := range []string{"hidden", ".git", "..x"} {
		if strings.Contains(list, name) {
			t.Errorf("%s is listed: %s", name, list)
		}
	}
}

// "Not served …: symbolic links that lead out of the folder or are absolute, devices, sockets and pipes." A link
// within the folder works.
func TestServeLinks(t *testing.T) {
	t.Parallel()
	f := newSite(t, map[string]string{"sub/deep/a.txt": "a", "b.txt": "b", "home/": ""})
	for name, to := range map[string]string{
		"to-file": "sub/deep/a.txt", "to-folder": "sub", "sub/deep/up.txt": "../../b.txt", "around": "home/../b.txt",
		"out": "../outside", "out-file": "../outside/secret.txt", "sub/out": "../../outside/secret.txt",
		"back": "../site/b.txt", "absolute": filepath.Join(f.path, "b.txt"), "system": "/etc/passwd", "self": "self",
		"dangling": "nothing", "home/index.html": "../../outside/secret.txt",
	} {
		if err := os.Symlink(to, filepath.Join(f.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]int{
		"/to-file": 200, "/to-folder": 301, "/to-folder/": 200, "/to-folder/deep/a.txt": 200, "/sub/deep/up.txt": 200, "/around": 200,
		"/out": 404, "/out/": 404, "/out/secret.txt": 404, "/out-file": 404, "/sub/out": 404, "/back": 404,
		"/absolute": 404, "/system": 404, "/self": 404, "/dangling": 404, "/home/index.html": 404, "/home/": 200,
	} {
		if w := ask(f, http.MethodGet, path); w.Code != want || strings.Contains(w.Body.String(), secret) {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	list := ask(f, http.MethodGet, "/").Body.String()
	for _, name := range []string{"to-file", "to-folder/", "around"} {
		if !strings.Contains(list, `"./`+name+`"`) {
			t.Errorf("%s is not listed", name)
		}
	}
	for _, name := range []string{"out", "out-file", "back", "absolute", "system", "self", "dangling"} {
		if strings.Contains(list, `"./`+name) {
			t.Errorf("%s is listed", name)
		}
	}
}

// TestServeRace has a name be a folder of the site, a link out of it and nothing, while it is asked for.
func TestServeRace(t *testing.T) {
	t.Parallel()
	f := newSite(t, map[string]string{"a/secret.txt": "fine"})
	name, kept, link := filepath.Join(f.path, "a"), filepath.Join(f.path, "kept"), filepath.Join(f.path, "link")
	var swaps sync.WaitGroup
	end := make(chan struct{})
	swaps.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
			}
			_ = os.Symlink("../outside", link)
			_ = os.Rename(name, kept)
			_ = os.Rename(link, name)
			_ = os.Remove(name)
			_ = os.Rename(kept, name)
		}
	})
	seen := map[int]int{}
	for range 3000 {
		w := ask(f, http.MethodGet, "/a/secret.txt")
		seen[w.Code]++
		if body := w.Body.String(); strings.Contains(body, secret) {
			t.Error("the secret was served")
		}
		size := len(secret)
		entries, _, _ := f.list("a", 10)
		for _, e := range entries {
			if e.size == int64(size) {
				t.Error("the secret was listed")
			}
		}
	}
	close(end)
	swaps.Wait()
	if seen[200] == 0 || seen[404] == 0 {
		t.Logf("one of the two was never seen: %v", seen)
	}
}

func TestServeConditions(t *testing.T) {
	t.Parallel()
	f := newSite(t, map[string]string{"a.txt": "0123456789"})
	changed := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	if err := os.Chtimes(filepath.Join(f.path, "a.txt"), changed, changed); err != nil {
		t.Fatal(err)
	}
	first := ask(f, http.MethodGet, "/a.txt")
	tag, at := first.Header().Get("ETag"), first.Header().Get("Last-Modified")
	if tag == "" || at != "Fri, 02 Jan 2026 03:04:05 GMT" || first.Header().Get("Accept-Ranges") != "bytes" {
		t.Fatalf("%v", first.Header())
	}
	for _, c := range []struct {
		header []string
		status int
		body   string
	}{
		{nil, 200, "0123456789"},
		{[]string{"If-None-Match", tag}, 304, ""},
		{[]string{"If-None-Match", `"other"`}, 200, "0123456789"},
		{[]string{"If-Modified-Since", at}, 304, ""},
		{[]string{"If-Modified-Since", "Thu, 01 Jan 2026 03:04:05 GMT"}, 200, "0123456789"},
		{[]string{"If-Match", `"other"`}, 412, ""},
		{[]string{"Range", "bytes=2-4"}, 206, "234"},
		{[]string{"Range", "bytes=-1"}, 206, "9"},
		{[]string{"Range", "bytes=10-"}, 416, "invalid range: failed to overlap\n"},
		{[]string{"Range", "bytes=2-4", "If-Range", tag}, 206, "234"},
		{[]string{"Range", "bytes=2-4", "If-Range", `"other"`}, 200, "0123456789"},
	} {
		w := ask(f, http.MethodGet, "/a.txt", c.header...)
		if w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%q: %d %q, want %d %q", c.header, w.Code, w.Body, c.status, c.body)
		}
	}
	// A change of size or time is another ETag.
	put(t, filepath.Join(f.path, "a.txt"), "0123456780")
	if w := ask(f, http.MethodGet, "/a.txt", "If-None-Match", tag); w.Code != 200 {
		t.Errorf("a changed file: %d", w.Code)
	}
}

func TestServeMethods(t *testing.T) {
	t.Parallel()
	f := newSite(t, map[string]string{"a.txt": "a"})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get"} {
		for _, path := range []string{"/a.txt", "/", "/none", "*"} {
			if w := ask(f, method, path); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d %v", method, path, w.Code, w.Header())
			}
		}
	}
}

// A redirect stays beside the path that was asked for: no name can be taken for another host or scheme.
func TestServeRedirects(t *testing.T) {
	t.Parallel()
	f := newSite(t, map[string]string{"a/x:y/": "", "b?c#d/": "", "http:/": ""})
	for path, want := range map[string]string{
		"/a": "./a/?q=1", "/a/x:y": "./x:y/?q=1", "/b?c#d": "./b%3Fc%23d/?q=1", "/http:": "./http:/?q=1",
	} {
		r := newRequest(path)
		r.URL.RawQuery = "q=1"
		w := record(f, r)
		if got := w.Header().Get("Location"); w.Code != 301 || got != want {
			t.Errorf("%s: %d to %q, want %q", path, w.Code, got, want)
		}
	}
}

func TestServeContentTypes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.html": "text/html; charset=utf-8", "a.css": "text/css; charset=utf-8", "a.js": "text/javascript; charset=utf-8",
		"a.md": "text/plain; charset=utf-8", "A.TXT": "text/plain; charset=utf-8", "a.svg": "image/svg+xml", "a.wasm": "application/wasm",
		"README": "",
	} {
		if got := contentType(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	f := newSite(t, map[string]string{"README": "plain words", "image": "\x89PNG\x0D\x0A\x1A\x0A"})
	for path, want := range map[string]string{"/README": "text/plain; charset=utf-8", "/image": "image/png", "/": "text/html; charset=utf-8"} {
		if got := ask(f, http.MethodGet, path).Header().Get("Content-Type"); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
