//go:build !race

package weirtls

import (
	"io"
	"runtime"
	"testing"

	"github.com/weirnet/weir"
)

// TestSenderAllocs: in the steady state a write costs no allocation, small, or larger than a record. It is not
// parallel, as it counts those of the process; the race detector would have some, too.
func TestSenderAllocs(t *testing.T) {
	for name, size := range map[string]int{"small": 100, "large": 40_000} {
		t.Run(name, func(t *testing.T) {
			p := onMachine(t, weir.Config{})
			senders := make(chan *Sender, 1)
			other := p.join(AsServer, Config{TLS: serverTLS(0)}, weir.ConnConfig{}, Handler{
				OnOpen: func(c *Conn) { senders <- c.Sender() },
			})
			c := stdConn(AsClient, other, clientTLS(0))
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			drain := make(chan struct{})
			go func() {
				defer close(drain)
				_, _ = io.Copy(io.Discard, struct{ io.Reader }{other}) // ciphertext: to read it would allocate
			}()
			s, b := <-senders, make([]byte, size)
			write := func() {
				for range 20 {
					for {
						_, err := s.Write(b)
						if err == nil {
							break
						}
						if err != weir.ErrWouldBlock {
							t.Fatal(err)
						}
						runtime.Gosched()
					}
				}
			}
			for range 20 { // queues and buffers grow to their size
				write()
			}
			if allocs := testing.AllocsPerRun(50, write); allocs > 0 {
				t.Errorf("%v allocations for 20 writes", allocs)
			}
			_ = other.Close()
			<-drain
		})
	}
}
