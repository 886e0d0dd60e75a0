package interop

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestMiekgDNS has a server and clients of miekg/dns over dgram.Conns.
func TestMiekgDNS(t *testing.T) {
	t.Run("many", func(t *testing.T) {
		t.Parallel()
		server := serveDNS(t)
		const clients, queries = 32, 50
		var wait sync.WaitGroup
		for i := range clients {
			wait.Go(func() {
				c := dialDNS(t, server)
				for j := range queries {
					name := fmt.Sprintf("q%d.c%d.1.example.", j, i)
					checkAnswer(t, exchange(t, c, question(name)), name, 1)
				}
			})
		}
		wait.Wait()
	})
	t.Run("sizes", func(t *testing.T) {
		t.Parallel()
		server := serveDNS(t)
		for _, c := range []struct {
			name      string
			texts     int
			edns      uint16 // 0: none
			truncated bool
		}{
			{"fits", 2, 0, false},
			{"over 512", 10, 0, true},
			{"fits 1232", 10, 1232, false},
			{"over 1232", 40, 1232, true},
			{"fits 4096", 40, 4096, false},
			{"fits 65535", 500, 65535, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				q := question(fmt.Sprintf("a.%d.example.", c.texts))
				if c.edns > 0 {
					q.SetEdns0(c.edns, false)
				}
				r := exchange(t, dialDNS(t, server), q)
				if r.Truncated != c.truncated {
					t.Fatalf("truncated %v, want %v", r.Truncated, c.truncated)
				}
				r.Compress = true // as it came
				if size := max(int(c.edns), dns.MinMsgSize); r.Len() > size {
					t.Errorf("%d bytes, more than %d", r.Len(), size)
				}
				if !c.truncated {
					checkAnswer(t, r, q.Question[0].Name, c.texts)
				}
			})
		}
	})
	t.Run("cut", func(t *testing.T) {
		t.Parallel()
		// An answer that is longer than the buffer it is read to is cut, as by a net.UDPConn, and no read is an error.
		c := dialDNS(t, serveDNS(t))
		q := question("a.10.example.")
		q.SetEdns0(4096, false)
		if err := c.WriteMsg(q); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		if n, err := c.Conn.Read(b); n != len(b) || err != nil {
			t.Fatalf("read %d bytes, %v", n, err)
		}
		checkAnswer(t, exchange(t, c, question("b.1.example.")), "b.1.example.", 1) // the rest is gone
	})
	t.Run("shutdown", func(t *testing.T) {
		t.Parallel()
		// "SetReadDeadline wakes the reader": else Shutdown would wait for the server's ReadTimeout.
		s := startDNS(t, time.Hour)
		checkAnswer(t, exchange(t, dialDNS(t, s.addr), question("a.1.example.")), "a.1.example.", 1)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if err := s.PacketConn.SetReadDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the socket of a server that is shut down: %v, want %v", err, net.ErrClosed)
		}
	})
}

func question(name string) *dns.Msg { return new(dns.Msg).SetQuestion(name, dns.TypeTXT) }

func exchange(t *testing.T, c *dns.Conn, q *dns.Msg) *dns.Msg {
	t.Helper()
	client := dns.Client{Timeout: 10 * time.Second}
	r, _, err := client.ExchangeWithConn(q, c)
	if err != nil {
		t.Errorf("%s: %v", q.Question[0].Name, err)
		return new(dns.Msg)
	}
	return r
}

// checkAnswer wants so many texts, each with the name that was asked for.
func checkAnswer(t *testing.T, r *dns.Msg, name string, texts int) {
	t.Helper()
	if len(r.Answer) != texts {
		t.Errorf("%s: %d answers, want %d", name, len(r.Answer), texts)
		return
	}
	for _, rr := range r.Answer {
		if text, ok := rr.(*dns.TXT); !ok || !strings.HasSuffix(strings.Join(text.Txt, ""), name) {
			t.Errorf("%s: the answer %v", name, rr)
		}
	}
}
