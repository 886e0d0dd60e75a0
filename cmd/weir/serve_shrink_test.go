package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that shrinks while it is served costs its own request only, and the client sees that it is not complete.
func TestServeShrinks(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto[:6], func(t *testing.T) {
			t.Parallel()
			const size = 64 << 20 // more than is on its way at once
			f := newSite(t, map[string]string{"a.txt": "a"})
			big := filepath.Join(f.path, "big.bin")
			put(t, big, "")
			if err := os.Truncate(big, size); err != nil {
				t.Fatal(err)
			}
			var lines bytes.Buffer
			log := newRequestLog(&lines, logText)
			w := newWatcher(f, log)
			s := httptest.NewUnstartedServer(w)
			s.EnableHTTP2 = proto == "HTTP/2.0"
			s.StartTLS()
			defer s.Close()

			r, err := s.Client().Get(s.URL + "/big.bin")
			if err != nil {
				t.Fatal(err)
			}
			if r.Proto != proto || r.ContentLength != size {
				t.Fatalf("%s, %d bytes announced", r.Proto, r.ContentLength)
			}
			if err := os.Truncate(big, 1); err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
			if err == nil || n >= size {
				t.Errorf("%d bytes came, and the error %v", n, err)
			}
			r, err = s.Client().Get(s.URL + "/a.txt")
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if string(text) != "a" || err != nil {
				t.Errorf("%q %v", text, err)
			}
			w.wait()
			if err := log.close(logPatience); err != nil {
				t.Error(err)
			}
			if w.errors.Load() != 1 || bytes.Count(lines.Bytes(), []byte("\n")) != 2 {
				t.Errorf("%s\n%s", w.text(), lines.Bytes())
			}
		})
	}
}

// "A client that takes nothing for a minute is cut off": it holds no file open.
func TestServeStalls(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto[:6], func(t *testing.T) {
			t.Parallel()
			f := newSite(t, map[string]string{"big.bin": ""})
			f.stall = 300 * time.Millisecond
			if err := os.Truncate(filepath.Join(f.path, "big.bin"), 64<<20); err != nil { // more than is on its way at once
				t.Fatal(err)
			}
			w := newWatcher(f, nil)
			s := httptest.NewUnstartedServer(w)
			s.EnableHTTP2 = proto == "HTTP/2.0"
			s.StartTLS()
			defer s.Close()
			r, err := s.Client().Get(s.URL + "/big.bin")
			if err != nil || r.Proto != proto {
				t.Fatal(r, err)
			}
			defer r.Body.Close()
			for end := time.Now().Add(scriptPatience); w.inProgress.Load() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it waits for ever")
				}
			}
			w.wait()
			if w.errors.Load() != 1 {
				t.Error(w.text())
			}
		})
	}
}

// A folder that is gone costs its request only.
func TestServeVanishes(t *testing.T) {
	t.Parallel()
	f := newSite(t, map[string]string{"a/b.txt": "b"})
	file, _, err := f.open("a/b.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(f.path); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(file); string(text) != "b" || err != nil {
		t.Errorf("what is open: %q %v", text, err)
	}
	_ = file.Close()
	for _, path := range []string{"/a/", "/a/b.txt"} {
		if w := ask(f, http.MethodGet, path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := ask(f, http.MethodGet, "/"); w.Code != 200 && w.Code != 404 {
		t.Errorf("the folder itself: %d", w.Code)
	}
}
