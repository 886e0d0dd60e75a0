package main

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// copier copies with memory that is used again, where io.Copy would allocate some for each file, and gives up on a client
// that has stalled: its file would stay open, for as long as it likes.
type copier struct {
	http.ResponseWriter
	pool  *sync.Pool // of *[]byte
	stall time.Duration
}

func (f *folder) copier(w http.ResponseWriter) *copier { return &copier{w, &f.pool, f.stall} }

func (c *copier) ReadFrom(r io.Reader) (int64, error) {
	b := c.pool.Get().(*[]byte)
	defer c.pool.Put(b)
	to := &stallWriter{Writer: c.ResponseWriter, control: http.NewResponseController(c.ResponseWriter), stall: c.stall}
	return io.CopyBuffer(to, struct{ io.Reader }{r}, *b)
}

// stallWriter has each write succeed within stall, or a quarter less, as a deadline is set only so often. The last one is
// net/http's to take back, after what it still has to write.
type stallWriter struct {
	io.Writer
	control *http.ResponseController
	stall   time.Duration
	set     time.Time // when the deadline was set
}

func (w *stallWriter) Write(b []byte) (int, error) {
	if now := time.Now(); now.Sub(w.set) >= w.stall/4 {
		w.set = now
		_ = w.control.SetWriteDeadline(now.Add(w.stall)) // where there is none, as in tests, it goes without
	}
	return w.Writer.Write(b)
}
