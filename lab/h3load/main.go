//go:build unix

package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/quic-go/quic-go/http3"
	"github.com/weirnet/weir/lab/internal/meter"
)

func main() {
	addr := flag.String("addr", "", "where the server listens")
	conns := flag.Int("conns", 1, "number of connections")
	flag.Parse()
	var done atomic.Uint64
	for range *conns {
		body, err := get("https://" + *addr + "/pour")
		if err != nil {
			meter.Fail(err)
		}
		go func() { meter.Fail(fmt.Errorf("a response without an end: %w", receive(body, &done))) }()
	}
	meter.Serve("", done.Load)
}

// get has a connection of its own.
func get(url string) (io.Reader, error) {
	t := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	r, err := (&http.Client{Transport: t}).Get(url)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, r.Status)
	}
	return r.Body, nil
}

func receive(body io.Reader, done *atomic.Uint64) error {
	for b := make([]byte, 64<<10); ; {
		n, err := body.Read(b)
		done.Add(uint64(n))
		if err != nil {
			return err
		}
	}
}
