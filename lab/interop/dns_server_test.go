package interop

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/weirnet/weir/dgram"
)

// dnsServer answers "x.N.example." with N texts of about 60 bytes.
type dnsServer struct {
	*dns.Server
	addr string
	done chan error
}

func startDNS(t *testing.T, readTimeout time.Duration) *dnsServer {
	t.Helper()
	c := listen(t)
	started := make(chan struct{})
	s := &dnsServer{addr: c.LocalAddr().String(), done: make(chan error, 1), Server: &dns.Server{
		PacketConn:        c,
		ReadTimeout:       readTimeout,
		Handler:           dns.HandlerFunc(answer),
		NotifyStartedFunc: func() { close(started) },
	}}
	go func() { s.done <- s.ActivateAndServe() }()
	select {
	case <-started:
	case err := <-s.done:
		t.Fatal(err)
	}
	return s
}

// serveDNS returns where a server is, which ends with the test.
func serveDNS(t *testing.T) string {
	t.Helper()
	s := startDNS(t, 0)
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s.addr
}

func (s *dnsServer) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.ShutdownContext(ctx); err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	return <-s.done
}

func answer(w dns.ResponseWriter, q *dns.Msg) {
	r := new(dns.Msg).SetReply(q)
	name, size := q.Question[0].Name, dns.MinMsgSize
	if opt := q.IsEdns0(); opt != nil {
		size = int(opt.UDPSize())
		r.SetEdns0(opt.UDPSize(), false)
	}
	labels := strings.Split(name, ".")
	texts, err := strconv.Atoi(labels[len(labels)-3])
	if err != nil {
		r.Rcode = dns.RcodeNameError
	}
	for i := range texts {
		r.Answer = append(r.Answer, &dns.TXT{
			Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeTXT, Class: dns.ClassINET},
			Txt: []string{fmt.Sprintf("%050d %s", i, name)},
		})
	}
	r.Truncate(size)
	_ = w.WriteMsg(r) // a client whose answer is lost asks no more, and fails
}

func dialDNS(t *testing.T, server string) *dns.Conn {
	t.Helper()
	c, err := dgram.Dial(t.Context(), "udp4", server, dgram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &dns.Conn{Conn: c}
}
