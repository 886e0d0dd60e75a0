package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
)

// asked is a request for a path.
func asked(path string) request {
	return request{
		began:  time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC),
		client: "[::1]:50000", // weir:port printed only
		proto:  "HTTP/3.0", method: "GET", path: path, status: 200, bytes: 1234, took: 1234567 * time.Nanosecond,
	}
}

func TestLogText(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/a.txt":                  "/a.txt",
		"/ü/日本":                   "/ü/日本",
		"/a b":                    `"/a b"`,
		"/a\"b":                   `"/a\"b"`,
		`/a\n`:                    `"/a\\n"`,
		"/x 200 5 1ms\n2026 fake": `"/x 200 5 1ms\n2026 fake"`,
		"/\x1b[2J":                `"/\x1b[2J"`,
		"/\u009b2J":               `"/\u009b2J"`,
		"/\u202egnp":              `"/\u202egnp"`,
		"/\u2028":                 `"/\u2028"`,
		"/\u00a0":                 `"/\u00a0"`,
		"/\xff":                   `"/\xff"`,
		"/\x00":                   `"/\x00"`,
		"/\r":                     `"/\r"`,
		"":                        `""`,
	} {
		want = "2026-01-02T03:04:05.006Z [::1]:50000 HTTP/3.0 GET " + want + " 200 1234 1.235ms\n" // weir:port printed only
		if got := asked(path).text(); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
	q := asked("/")
	q.method, q.client = "G\nT", "a b"
	if got := q.text(); !strings.Contains(got, ` "a b" HTTP/3.0 "G\nT" / `) {
		t.Error(got)
	}
}

func TestLogJSON(t *testing.T) {
	t.Parallel()
	if got, want := asked("/a<b>&").json(), `{"time":"2026-01-02T03:04:05.006Z","client":"[::1]:50000","proto":"HTTP/3.0",`+ // weir:port printed only
		`"method":"GET","path":"/a\u003cb\u003e\u0026","status":200,"bytes":1234,"duration_ms":1.234}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, path := range []string{
		"/", "/\"},{\"path\":\"fake", "/\n{}", "/\x1b[2J", "/\u009b2J", "/\u202e", "/\u2028", "/\x7f", "/\x00", "/\U000e0001", "/\U0001f600",
	} {
		line := asked(path).json()
		var got struct{ Path string }
		if err := json.Unmarshal([]byte(line), &got); err != nil || got.Path != path {
			t.Errorf("%q: %q %v", path, got.Path, err)
		}
		if i := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q: %q", path, line)
		}
	}
	if line := asked("/\xff").json(); !json.Valid([]byte(line)) {
		t.Error(line)
	}
}

// A line is of limited length, and is cut between characters.
func TestLogClips(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/" + strings.Repeat("x", 1<<16), "/" + strings.Repeat("ü", 1<<16), "/" + strings.Repeat("\x80", 1<<16)} {
		q := asked(path)
		if text := q.text(); len(text) > 7*maxLogged || !strings.Contains(text, "…") {
			t.Errorf("%d bytes", len(text))
		}
		if text := q.json(); len(text) > 7*maxLogged || !json.Valid([]byte(text)) {
			t.Errorf("%d bytes", len(text))
		}
	}
	if got := clip(strings.Repeat("x", maxLogged)); len(got) != maxLogged {
		t.Errorf("%d bytes", len(got))
	}
}

// Lines of many goroutines come whole, each once.
func TestLogTogether(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := newRequestLog(&out, logText)
	var all sync.WaitGroup
	const writers, each = 8, 300
	for w := range writers {
		all.Go(func() {
			for i := range each {
				l.add(asked(fmt.Sprintf("/%d/%d", w, i)))
			}
		})
	}
	all.Wait()
	if err := l.close(logPatience); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^2026\S+ \S+ HTTP/3.0 GET (/\d/\d+) 200 1234 1.235ms$`)
	seen := map[string]bool{}
	for text := range strings.Lines(out.String()) {
		m := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		if m == nil || seen[m[1]] {
			t.Fatalf("the line %q", text)
		}
		seen[m[1]] = true
	}
	if len(seen) != writers*each {
		t.Errorf("%d lines", len(seen))
	}
}

// stuck is a reader of the log that is slow: a write waits until it is let go.
type stuck struct {
	began chan struct{}
	free  chan struct{}
	err   error
}

func (s *stuck) Write(b []byte) (int, error) {
	select {
	case s.began <- struct{}{}:
	default:
	}
	<-s.free
	return len(b), s.err
}

// "A request does not wait for the log": memory is limited, and what is lost is told. Nor does the
// end wait for a reader that has stopped.
func TestLogStuck(t *testing.T) {
	t.Parallel()
	out := &stuck{began: make(chan struct{}, 1), free: make(chan struct{})}
	l := newRequestLog(out, logText)
	q := asked(strings.Repeat("x", maxLogged))
	for range 4 * maxUnwritten / maxLogged {
		l.add(q) // never waits
	}
	<-out.began
	l.mu.Lock()
	kept := len(l.lines)
	l.mu.Unlock()
	if kept > maxUnwritten {
		t.Errorf("%d bytes are kept", kept)
	}
	if err := l.close(time.Millisecond); err == nil || !strings.Contains(err.Error(), "cut off, as nobody has read it for 1ms") {
		t.Error(err)
	}
	close(out.free)
	if err := l.close(logPatience); err == nil || !strings.Contains(err.Error(), "lines of the request log were lost") {
		t.Error(err)
	}
	l.add(q) // of a handler that is late: counted, not kept
}

func TestLogFails(t *testing.T) {
	t.Parallel()
	out := &stuck{began: make(chan struct{}, 1), free: make(chan struct{}), err: errors.New("disk full")}
	close(out.free)
	l := newRequestLog(out, logJSON)
	for range 100 {
		l.add(asked("/"))
	}
	if err := l.close(logPatience); err == nil || err.Error() != "disk full" {
		t.Error(err)
	}
}
