//go:build unix

package main

import (
	"crypto/tls"
	"io"
	"slices"
	"sync"
	"time"
)

// delays are those since they were taken last.
type delays struct {
	mu  sync.Mutex
	all []time.Duration // guarded by mu
}

func (d *delays) add(v time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, v)
}

func (d *delays) take() []int64 {
	d.mu.Lock()
	all := d.all
	d.all = nil
	d.mu.Unlock()
	if len(all) == 0 {
		return []int64{0, 0, 0}
	}
	slices.Sort(all)
	return []int64{int64(len(all)), int64(all[len(all)/2]), int64(all[len(all)*99/100])}
}

func echo(l load) (answer func() []int64, err error) {
	conns, err := l.each(nothing)
	if err != nil {
		return nil, err
	}
	d := new(delays)
	begin := time.Now()
	for i, c := range conns {
		due := begin.Add(l.period * time.Duration(i) / time.Duration(len(conns)))
		forever([]*tls.Conn{c}, func(c *tls.Conn) error { return l.exchange(c, due, d) })
	}
	return d.take, nil
}

// exchange counts from when a message was due: one that waits for the answer to the message before has waited.
func (l load) exchange(c *tls.Conn, due time.Time, d *delays) error {
	b := make([]byte, l.size)
	for ; ; due = due.Add(l.period) {
		time.Sleep(time.Until(due))
		if _, err := c.Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		d.add(time.Since(due))
	}
}
