//go:build unix

package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
)

// handshakes counts those in progress; quic-go itself has no limit to them.
type handshakes struct{ n atomic.Int64 }

func (h *handshakes) inProgress() uint64 { return uint64(h.n.Load()) }
func (h *handshakes) most() uint64       { return 0 }

// over is the key of what a connection's context holds: the function that counts its handshake as over.
type over struct{}

func (h *handshakes) begin(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
	h.n.Add(1)
	end := sync.OnceFunc(func() { h.n.Add(-1) })
	context.AfterFunc(ctx, end)
	return context.WithValue(ctx, over{}, end), nil
}

// listener tells of handshakes that come about: a connection is accepted when the server has done its part.
type listener struct {
	*quic.EarlyListener
	h *handshakes
}

func (l listener) Accept(ctx context.Context) (*quic.Conn, error) {
	c, err := l.EarlyListener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	go func() {
		select {
		case <-c.HandshakeComplete():
			c.Context().Value(over{}).(func())()
		case <-c.Context().Done():
		}
	}()
	return c, nil
}
