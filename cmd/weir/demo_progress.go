package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/weirnet/weir"
)

// progress says what is going on: a line that is drawn again and again on a terminal, else a line for each
// run. Its own goroutine draws, as the loop may have no time for it.
type progress struct {
	out      io.Writer
	terminal bool
	runs     int
	length   time.Duration // of a run

	run  int           // that is on, from 1
	quit chan struct{} // closed by stop; nil between runs
	done chan struct{} // closed when nothing is drawn any more
}

const redraw = 100 * time.Millisecond

func newProgress(out io.Writer, runs int, length time.Duration) *progress {
	return &progress{out: out, terminal: isTerminal(out), runs: runs, length: length}
}

// isTerminal takes any character device for one: what is drawn on another does not matter.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// start begins to tell of a run; stop must follow.
func (p *progress) start(b weir.Bound, r *receiver) {
	p.run++
	if !p.terminal {
		fmt.Fprintf(p.out, "run %d of %d: %v, %s\n", p.run, p.runs, b, shortDuration(p.length))
		return
	}
	p.quit, p.done = make(chan struct{}), make(chan struct{})
	go p.draw(b, r)
}

func (p *progress) stop() {
	if p.quit != nil {
		close(p.quit)
		<-p.done
		p.quit = nil
	}
}

func (p *progress) draw(b weir.Bound, r *receiver) {
	defer close(p.done)
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	width := 0
	for {
		line := p.line(b, r.elapsed(), r.fired.Load(), r.net.amount(r.delivered.Load()))
		width = max(width, len(line))
		fmt.Fprintf(p.out, "\r%-*s", width, line)
		select {
		case <-tick.C:
		case <-p.quit:
			fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", width))
			return
		}
	}
}

func (p *progress) line(b weir.Bound, elapsed time.Duration, fired int64, amount string) string {
	elapsed = min(elapsed, p.length)
	return fmt.Sprintf("run %d of %d: %v, %.1f s of %s, %d of %d ticks, %s", p.run, p.runs, b,
		elapsed.Seconds(), shortDuration(p.length), fired, elapsed/period, amount)
}
