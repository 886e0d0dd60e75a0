package main

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptFetch is "fetch file path status": the server whose URL stands in the file, which may be yet to come, answers a
// GET of the path with that status. What it sends goes to the file body.
func scriptFetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: fetch file path status")
	}
	client, answer := get(ts, args[0], args[1])
	defer client.CloseIdleConnections()
	defer answer.Body.Close()
	if strconv.Itoa(answer.StatusCode) != args[2] {
		ts.Fatalf("status %d, want %s", answer.StatusCode, args[2])
	}
	body, err := os.Create(ts.MkAbs("body"))
	ts.Check(err)
	_, err = io.Copy(body, answer.Body)
	ts.Check(err)
	ts.Check(body.Close())
}

// stalled is the key of the answer that scriptStall left.
type stalled struct{}

// scriptStall is "stall file path": the same, but nothing is read of what it sends before "finish", or the script's end.
func scriptStall(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: stall file path")
	}
	client, answer := get(ts, args[0], args[1])
	kept, ok := ts.Value(stalled{}).(*io.ReadCloser)
	if !ok {
		ts.Fatalf("no place for what is stalled")
	}
	*kept = answer.Body
	ts.Defer(func() {
		_ = answer.Body.Close()
		client.CloseIdleConnections()
	})
}

// scriptFinish is "finish N": what was stalled last comes to its end, after N bytes.
func scriptFinish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: finish N")
	}
	n, err := io.Copy(io.Discard, *ts.Value(stalled{}).(*io.ReadCloser))
	ts.Check(err)
	if strconv.FormatInt(n, 10) != args[0] {
		ts.Fatalf("%d bytes, want %s", n, args[0])
	}
}

// scriptRefused is "refused file": the server whose URL stands in the file comes to refuse connections.
func scriptRefused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: refused file")
	}
	u, err := url.Parse(servedURL.FindString(ts.ReadFile(args[0])))
	ts.Check(err)
	for end := time.Now().Add(scriptPatience); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			return
		}
		_ = c.Close()
		if time.Now().After(end) {
			ts.Fatalf("%s takes connections", u.Host)
		}
	}
}

// scriptTaken is "taken tcp|udp host": a port of the host is taken until the script ends; $TAKEN is its number. It is none
// of those that the system chooses, so that no test beside has it for the other protocol.
func scriptTaken(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: taken tcp|udp host")
	}
	const first, count = 10_000, 20_000 // Linux chooses from 32768 on
	for range 100 {
		port := strconv.Itoa(first + rand.IntN(count))
		at := net.JoinHostPort(args[1], port)
		l, err := net.Listen("tcp", at)
		if err != nil {
			continue
		}
		c, err := net.ListenPacket("udp", at)
		if err != nil {
			_ = l.Close()
			continue
		}
		taken, free := io.Closer(l), io.Closer(c)
		if args[0] == "udp" {
			taken, free = free, taken
		}
		_ = free.Close()
		ts.Defer(func() { _ = taken.Close() })
		ts.Setenv("TAKEN", port)
		return
	}
	ts.Fatalf("no port of %s is free", args[1])
}

// scriptPatience is how long a script waits for what must happen.
const scriptPatience = time.Minute

var servedURL = regexp.MustCompile(`https://[^\s,]+`)

// get waits for the URL and asks it for the path, by HTTP/2.
func get(ts *testscript.TestScript, file, path string) (*http.Client, *http.Response) {
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	ts.Defer(cancel)
	to := ""
	for to == "" {
		text, _ := os.ReadFile(ts.MkAbs(file)) // not there yet
		if to = servedURL.FindString(string(text)); to == "" {
			if ctx.Err() != nil {
				ts.Fatalf("no URL in %s: %s", file, text)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it is self-signed
		ForceAttemptHTTP2: true,
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	ts.Check(err)
	r.URL.Opaque = "//" + r.URL.Host + path // as it is
	answer, err := client.Do(r)
	ts.Check(err)
	return client, answer
}
