package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

func testReceiver() *receiver {
	r := &receiver{started: make(chan struct{})}
	r.fired.Store(31)
	r.delivered.Store(1234)
	return r
}

func TestProgressPlain(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := newProgress(&b, 2, 2*time.Second)
	for _, bound := range []weir.Bound{weir.Unbounded(), weir.Count(32)} {
		p.start(bound, testReceiver())
		p.stop()
	}
	if want := "run 1 of 2: unbounded, 2s\nrun 2 of 2: count:32, 2s\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestProgressTerminal expects a line that is drawn at once, and gone when the run is.
func TestProgressTerminal(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := newProgress(&b, 3, 2*time.Second)
	p.terminal = true
	p.start(weir.Count(32), testReceiver())
	p.stop()
	const line = "run 1 of 3: count:32, 0.0 s of 2s, 31 of 0 ticks, 1,234 delivered"
	blank := "\r" + strings.Repeat(" ", len(line)) + "\r"
	if got := b.String(); !strings.HasPrefix(got, "\r"+line) || !strings.HasSuffix(got, blank) || strings.Contains(got, "\n") {
		t.Errorf("got %q", got)
	}
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	p := &progress{runs: 3, run: 2, length: 2 * time.Second}
	const want = "run 2 of 3: share, 1.2 s of 2s, 60 of 61 ticks, 7 delivered"
	if got := p.line(weir.Share(), 1234*ms, 60, "7 delivered"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	const atEnd = "run 2 of 3: share, 2.0 s of 2s, 100 of 100 ticks, 7 delivered"
	if got := p.line(weir.Share(), 2005*ms, 100, "7 delivered"); got != atEnd {
		t.Errorf("got %q, want %q", got, atEnd)
	}
}

func TestAmount(t *testing.T) {
	t.Parallel()
	for n, want := range map[network]string{overUDP: "12,345,678 delivered", overTCP: "12.3 MB read"} {
		if got := n.amount(12_345_678); got != want {
			t.Errorf("%s: got %q, want %q", n, got, want)
		}
	}
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if isTerminal(w) || isTerminal(new(bytes.Buffer)) {
		t.Error("a pipe or a buffer was taken for a terminal")
	}
}
