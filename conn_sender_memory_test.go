package weir

import (
	"runtime"
	"testing"
	"time"
)

// TestConnSenderMemory: a connection that once had much to send holds no memory for it when all has gone.
func TestConnSenderMemory(t *testing.T) {
	const conns, burst, most = 16, 1 << 20, 4 << 20
	l := newLoop(t, Config{Kernel: realKernel(t)})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var all []*Conn
	ln := serve(t, l, ListenerConfig{}, ConnHandler{OnOpen: func(c *Conn) { all = append(all, c) }})
	received := 0
	before := uint64(0)
	tick := l.Every(time.Millisecond, func() {
		if len(all) < conns || before != 0 {
			return
		}
		before = heap()
		for _, c := range all {
			if _, err := c.Sender().Write(make([]byte, burst)); err != nil {
				t.Error(err)
			}
		}
	})
	for range conns {
		dialTo(t, l, ln, ConnConfig{}, ConnHandler{OnData: func(_ *Conn, b []byte) {
			if received += len(b); received < conns*burst {
				return
			}
			tick.Stop()
			l.AfterFunc(10*time.Millisecond, func() {
				l.chunks.Trim()
				if after := heap(); after > before+most {
					t.Errorf("%d bytes are held for %d connections that send nothing", after-before, conns)
				}
				_ = l.Close()
			})
		}})
	}
	run(t, l)
	runtime.KeepAlive(all)
}
