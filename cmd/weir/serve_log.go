package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// request is what is logged of one.
type request struct {
	began               time.Time
	client              string
	proto, method, path string
	status              int
	bytes               int64
	took                time.Duration
}

// maxLogged is how much of a path, or of any other text of a client, is logged.
const maxLogged = 1024

// text is a line of words, each of which is quoted where it could be taken for more than one, or turn the line.
func (q request) text() string {
	return fmt.Sprintf("%s %s %s %s %s %d %d %s\n", q.began.UTC().Format(logTime), word(q.client), word(q.proto),
		word(q.method), word(q.path), q.status, q.bytes, q.took.Round(time.Microsecond))
}

const logTime = "2006-01-02T15:04:05.000Z"

// json is a line. What is not printable is escaped, as a terminal may obey it.
func (q request) json() string {
	line, err := json.Marshal(struct {
		Time       string  `json:"time"`
		Client     string  `json:"client"`
		Proto      string  `json:"proto"`
		Method     string  `json:"method"`
		Path       string  `json:"path"`
		Status     int     `json:"status"`
		Bytes      int64   `json:"bytes"`
		DurationMS float64 `json:"duration_ms"`
	}{
		q.began.UTC().Format(logTime), clip(q.client), clip(q.proto), clip(q.method), clip(q.path),
		q.status, q.bytes, float64(q.took.Microseconds()) / 1000,
	})
	if err != nil { // no value of these types fails
		return ""
	}
	var b strings.Builder
	for _, r := range string(line) {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(escaped(r))
		}
	}
	return b.String() + "\n"
}

// escaped is a character as JSON has it; those that need two are never printed plainly, so that none is lost.
func escaped(r rune) string {
	if r < 0x10000 {
		return fmt.Sprintf(`\u%04x`, r)
	}
	r -= 0x10000
	return fmt.Sprintf(`\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
}

// word is s, quoted unless it is plain.
func word(s string) string {
	s = clip(s)
	for _, r := range s {
		if r == utf8.RuneError || r == ' ' || r == '"' || r == '\\' || !unicode.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

func clip(s string) string {
	if len(s) <= maxLogged {
		return s
	}
	n := maxLogged
	for n > maxLogged-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// maxUnwritten is how many bytes of lines wait for a reader that is slow. What comes on top is lost, and counted: a
// request does not wait for the log.
const maxUnwritten = 1 << 20

// requestLog writes lines, for any number of goroutines; one of its own does the writing.
type requestLog struct {
	out    io.Writer
	format logFormat
	wake   chan struct{} // holds one token at most
	ended  chan struct{}

	mu      sync.Mutex
	lines   []byte
	dropped uint64
	closed  bool

	err error // of the writing goroutine, until it has ended
}

func newRequestLog(out io.Writer, format logFormat) *requestLog {
	l := &requestLog{out: out, format: format, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go l.write()
	return l
}

func (l *requestLog) add(q request) {
	line := ""
	if l.format == logJSON {
		line = q.json()
	} else {
		line = q.text()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.lines)+len(line) > maxUnwritten {
		l.dropped++
		return
	}
	l.lines = append(l.lines, line...)
	l.signal()
}

func (l *requestLog) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write ends once the log is closed and all lines are out. After an error it takes lines and forgets them.
func (l *requestLog) write() {
	defer close(l.ended)
	var spare []byte
	for range l.wake {
		l.mu.Lock()
		lines, closed := l.lines, l.closed
		l.lines = spare[:0]
		l.mu.Unlock()
		if l.err == nil && len(lines) > 0 {
			_, l.err = l.out.Write(lines)
		}
		spare = lines
		if closed {
			return
		}
	}
}

// logPatience is how long a reader may take for what is left at the end.
const logPatience = 5 * time.Second

// close writes what is left, and waits for it, but not for a reader that has stopped.
func (l *requestLog) close(patience time.Duration) error {
	l.mu.Lock()
	l.closed = true
	l.signal()
	l.mu.Unlock()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-l.ended:
	case <-t.C:
		return fmt.Errorf("the request log was cut off, as nobody has read it for %s", shortDuration(patience))
	}
	if l.err == nil && l.dropped > 0 {
		return fmt.Errorf("%s of the request log were lost, as nobody read it fast enough", several(l.dropped, "line"))
	}
	return l.err
}
