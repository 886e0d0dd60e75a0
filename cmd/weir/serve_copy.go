package main

import (
	"io"
	"net/http"
	"sync"
)

// copier copies files with memory that is used again, where io.Copy would allocate some for each.
type copier struct {
	http.ResponseWriter
	pool *sync.Pool // of *[]byte
}

func (c *copier) ReadFrom(r io.Reader) (int64, error) {
	b := c.pool.Get().(*[]byte)
	defer c.pool.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{c.ResponseWriter}, r, *b)
}
