package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// watcher counts and logs the requests of a handler.
type watcher struct {
	handler    http.Handler
	log        *requestLog // nil: none
	began      time.Time
	inProgress atomic.Int64
	versions   [4]atomic.Uint64 // requests by major version of HTTP
	bytes      atomic.Int64     // of bodies
	errors     atomic.Uint64

	mu      sync.Mutex
	ended   bool           // guarded by mu: no handler begins any more
	running sync.WaitGroup // added to under mu, while not ended
}

func newWatcher(h http.Handler, log *requestLog) *watcher {
	return &watcher{handler: h, log: log, began: time.Now()}
}

// ServeHTTP ends with http.ErrAbortHandler where the answer is shorter than it was announced, as a file shrank: so
// the client sees that it is not complete.
func (w *watcher) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if !w.begin() {
		panic(http.ErrAbortHandler)
	}
	w.inProgress.Add(1)
	defer w.running.Done()
	defer w.inProgress.Add(-1)
	began := time.Now()
	a := &answer{ResponseWriter: rw}
	complete := false
	defer func() {
		w.note(r, a, complete, began)
	}()
	w.handler.ServeHTTP(a, r)
	if complete = r.Method == http.MethodHead || !a.isShort(); !complete {
		panic(http.ErrAbortHandler)
	}
}

func (w *watcher) note(r *http.Request, a *answer, complete bool, began time.Time) {
	if r.ProtoMajor > 0 && r.ProtoMajor < len(w.versions) {
		w.versions[r.ProtoMajor].Add(1)
	}
	w.bytes.Add(a.bytes)
	if !complete || a.code() >= http.StatusBadRequest {
		w.errors.Add(1)
	}
	if w.log != nil {
		w.log.add(request{
			began: began, client: r.RemoteAddr, proto: r.Proto, method: r.Method, path: r.URL.Path,
			status: a.code(), bytes: a.bytes, took: time.Since(began),
		})
	}
}

func (w *watcher) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.running.Add(1)
	return true
}

// wait waits for the handlers that run, and lets no other begin. Their connections are closed.
func (w *watcher) wait() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.running.Wait()
}

// text tells what was served.
func (w *watcher) text() string {
	var total uint64
	var parts []string
	for v := range w.versions {
		n := w.versions[v].Load()
		total += n
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s over %s", grouped(n), [...]string{1: "HTTP/1", 2: "HTTP/2", 3: "HTTP/3"}[v]))
		}
	}
	by := ""
	if len(parts) > 0 {
		by = " (" + strings.Join(parts, ", ") + ")"
	}
	return fmt.Sprintf("served %s%s, %s, %s, in %s", several(total, "request"), by, shortBytes(w.bytes.Load()),
		several(w.errors.Load(), "error"), time.Since(w.began).Round(100*time.Millisecond))
}

func several(n uint64, word string) string {
	if n != 1 {
		word += "s"
	}
	return grouped(n) + " " + word
}

// answer is a ResponseWriter that knows what was written.
type answer struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

func (a *answer) code() int {
	if a.status == 0 {
		return http.StatusOK
	}
	return a.status
}

// isShort says that the header announced more than was written.
func (a *answer) isShort() bool {
	announced, err := strconv.ParseInt(a.Header().Get("Content-Length"), 10, 64)
	return err == nil && a.bytes < announced && a.status != http.StatusNotModified
}
