package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

const listGolden = "testdata/serve_list.html"

// TestServeListGolden compares a page with the one that was looked at in browsers. UPDATE=1 writes it anew.
func TestServeListGolden(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entries := []entry{
		{"b.txt", false, 0, at}, {"B.txt", false, 999, at}, {"a<b>&\"'.html", false, 1000, at}, {"zoo", true, 4096, at},
		{"Ä rough draft.pdf", false, 123_456_789, at}, {"100%.txt", false, 9_960, at}, {"a:b", true, 4096, at},
	}
	sortEntries(entries)
	page := listPage("docs/x & y", entries, true)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(listGolden, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(listGolden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, want) {
		t.Errorf("the page is\n%s\nwant\n%s", page, want)
	}
	links(t, page)
}

// hostile are names that a page, a link or a terminal may take for something else.
var hostile = []string{
	"plain.txt", `"quoted"`, "it's", "<script>alert(1)</script>"[:17], "a&amp;b", "100%", "%2e%2e", "a b", " lead", "trail ",
	"new\nline", "tab\t", "bell\a", "esc\x1b[31m", "\xff\xfe", "a\xc3", "javascript:alert(1)", "http:", "mailto:x", "?query", "#anchor",
	"a;b", "a+b", "a=b", "ünï", "\u202egnp.exe", "\u2028", "{{.}}", "--", "*", "|", "<!--", "]]>", "~", "$(x)",
}

// Each name is a link that leads to its file, however it is spelled, and the page is well-formed.
func TestServeListLinks(t *testing.T) {
	t.Parallel()
	f := newSite(t, nil)
	want := map[string]bool{}
	for _, name := range hostile {
		put(t, filepath.Join(f.path, "x&y", name), "content of "+name)
		want["content of "+name] = true
	}
	put(t, filepath.Join(f.path, "x&y", `back\slash`), "is not served")
	base := &url.URL{Scheme: "https", Host: "host", Path: "/x&y/"}
	page := ask(f, http.MethodGet, base.Path).Body.Bytes()
	for _, c := range page {
		if c < ' ' && c != '\n' || c == 0x7f {
			t.Errorf("the page has the control character %#x", c)
		}
	}
	hrefs := links(t, page)
	for _, href := range hrefs {
		to, err := base.Parse(href)
		if err != nil || to.Host != base.Host || to.Scheme != base.Scheme || to.RawQuery != "" || to.Fragment != "" {
			t.Errorf("the link %q leads to %v (%v)", href, to, err)
			continue
		}
		w := ask(f, http.MethodGet, to.Path)
		if strings.HasSuffix(to.Path, "/") {
			continue // the way up
		}
		if body := w.Body.String(); !want[body] {
			t.Errorf("the link %q leads to %d %q", href, w.Code, body)
		} else {
			delete(want, body)
		}
	}
	for body := range want {
		t.Errorf("no link leads to the %q", body)
	}
}

// links checks that each element that is opened is closed, in its place, and returns where the links lead.
func links(t *testing.T, page []byte) (hrefs []string) {
	t.Helper()
	var open []string
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("not closed: %q", open)
			}
			return hrefs
		case html.StartTagToken:
			token := z.Token()
			if token.Data == "script" {
				t.Error("a script")
			}
			for _, a := range token.Attr {
				if a.Key == "href" {
					hrefs = append(hrefs, a.Val)
				} else if !slices.Contains([]string{"lang", "charset", "name", "content"}, a.Key) {
					t.Errorf("the attribute %q", a.Key)
				}
			}
			if token.Data != "meta" {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			name := z.Token().Data
			if len(open) == 0 || open[len(open)-1] != name {
				t.Fatalf("</%s> in %q", name, open)
			}
			open = open[:len(open)-1]
		case html.CommentToken:
			t.Errorf("a comment: %q", z.Token().Data)
		}
	}
}

func TestServeListLimit(t *testing.T) {
	t.Parallel()
	f := newSite(t, nil)
	for i := range 700 {
		put(t, filepath.Join(f.path, fmt.Sprint("f", i)), "")
		put(t, filepath.Join(f.path, fmt.Sprint(".f", i)), "")
	}
	for most, wantMore := range map[int]bool{1: true, 699: true, 700: false, 701: false} {
		entries, more, err := f.list(".", most)
		if err != nil || more != wantMore || len(entries) != min(most, 700) {
			t.Errorf("%d: %d entries, more %v, %v", most, len(entries), more, err)
		}
	}
	if page := string(listPage(".", make([]entry, maxListed), true)); !strings.Contains(page, "There is more: these are 10,000 entries of it.") {
		t.Error("the page does not tell that there is more")
	}
}

// As many lists as may be made at once wait for places; who has gone does not.
func TestServeListPlaces(t *testing.T) {
	t.Parallel()
	f := newSite(t, nil)
	for range listsAtOnce {
		f.lists <- struct{}{}
	}
	answered := make(chan int)
	go func() { answered <- ask(f, http.MethodGet, "/").Code }()
	select {
	case code := <-answered:
		t.Fatalf("answered %d without a place", code)
	case <-time.After(50 * time.Millisecond):
	}
	<-f.lists
	if code := <-answered; code != 200 {
		t.Errorf("%d", code)
	}
}

// What clients have not taken of lists is limited.
func TestServeListBytes(t *testing.T) {
	t.Parallel()
	f := newSite(t, nil)
	f.pages.Store(maxPageBytes)
	if code := ask(f, http.MethodGet, "/").Code; code != http.StatusServiceUnavailable {
		t.Errorf("%d while lists wait", code)
	}
	f.pages.Store(0)
	if code := ask(f, http.MethodGet, "/").Code; code != http.StatusOK || f.pages.Load() != 0 {
		t.Errorf("%d, %d bytes wait after", code, f.pages.Load())
	}
}

func TestShortBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 1499: "1.5 kB", 9_949: "9.9 kB", 9_951: "10 kB", 999_499: "999 kB",
		999_500: "1.0 MB", 1 << 30: "1.1 GB", 1<<63 - 1: "9.2 EB",
	} {
		if got := shortBytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
