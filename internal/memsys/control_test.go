package memsys_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir/internal/sys"
)

// TestRecvTimeIsTheBubbles has the exact times that only a bubble has.
func TestRecvTimeIsTheBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		fd, addr := h.bound("127.0.0.1:0")
		h.set(fd, sys.RecvTime, 1)
		sent := time.Now()
		if err := h.send(fd, nil, addr); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if m, err := h.recv(fd); !m.Control.Time.Equal(sent) || err != nil {
			t.Errorf("received at %v, %v; sent at %v", m.Control.Time, err, sent)
		}
	})
}
