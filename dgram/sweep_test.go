//go:build linux

package dgram

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/weirtest"
)

// quicSweep runs a small transfer with the first call of each kind failing, then the second, and so on, with each errno of
// fault.Errnos, once or from there on.
type quicSweep struct {
	lasting bool
	quick   bool // one errno for each call
	most    int  // the last call of a kind that fails; 0: as many as there are

	serverTLS, clientTLS *tls.Config
	runs                 int
}

// sweptCalls are those that a Conn makes.
var sweptCalls = []fault.Call{fault.Recv, fault.Send, fault.SetOption, fault.GetOption, fault.MemInfo, fault.Describe, fault.Duplicate}

// sweptRun is one transfer, on whose server or client a call fails.
type sweptRun struct {
	plan   fault.Plan
	client bool

	open   error // of Listen: no transfer
	err    error
	faults *fault.Injector
	took   time.Duration
	sent   uint64
	lost   uint64
}

func sweepQUIC(t *testing.T, s quicSweep) {
	weirtest.CheckLeaks(t)
	s.serverTLS, s.clientTLS = quicTLS(t)
	live := slices.Clone(sweptCalls)
	for k := 1; len(live) > 0 && (s.most == 0 || k <= s.most); k++ {
		hit := make(map[fault.Call]bool)
		for group := range slices.Chunk(s.plans(k, live), 24) {
			s.runAll(t, group)
			for _, r := range group {
				if r.hits() {
					hit[r.plan.Rules[0].Call] = true
				}
				if err := s.verdict(r); err != nil {
					t.Errorf("with the plan %q, for the client: %v: %v", r.plan.String(), r.client, err)
				}
			}
			if t.Failed() {
				return
			}
		}
		live = slices.DeleteFunc(live, func(c fault.Call) bool { return !hit[c] })
	}
	t.Logf("%d runs", s.runs)
}

func (s *quicSweep) plans(k int, calls []fault.Call) (runs []*sweptRun) {
	for _, c := range calls {
		errnos := fault.Errnos(c)
		if c == fault.Recv || s.lasting {
			// A receive that answers EAGAIN with datagrams there is none that the poller wakes for again, and nothing is
			// writable for ever that answers it.
			errnos = slices.DeleteFunc(errnos, func(e syscall.Errno) bool { return e == syscall.EAGAIN })
		}
		if s.quick {
			errnos = errnos[k%len(errnos):][:1]
		}
		for i, e := range errnos {
			r := fault.Rule{Call: c, From: k, Action: fault.Action{Errno: e}}
			if s.lasting {
				r.Times = -1
			}
			runs = append(runs, &sweptRun{plan: fault.Plan{Rules: []fault.Rule{r}}, client: (k+i)%2 == 0})
		}
	}
	return runs
}

func (s *quicSweep) runAll(t *testing.T, group []*sweptRun) {
	var all sync.WaitGroup
	s.runs += len(group)
	before, began := processorTime(), time.Now()
	for _, r := range group {
		all.Go(func() { s.run(t.Context(), r) })
	}
	all.Wait()
	wall, used := time.Since(began), processorTime()-before
	// Of two processors a group that waits takes next to nothing, and one handshake of each some.
	if allowed := time.Duration(len(group)) * 500 * time.Millisecond; s.lasting && used > allowed+wall/2 {
		t.Errorf("%d runs took %v of the processor in %v; the first with the plan %q", len(group), used, wall, group[0].plan.String())
	}
}

func (s *quicSweep) run(ctx context.Context, r *sweptRun) {
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	server, client := Config{}, Config{}
	// Options to set, so that there are calls to fail.
	faulty := Config{Faults: r.plan, TTL: 64, RecvBufferBytes: 1 << 18}
	if r.client {
		client = faulty
	} else {
		server = faulty
	}
	x := &transfer{serverTLS: s.serverTLS, clientTLS: s.clientTLS, bytes: 30_000, patience: 5 * time.Second}
	if s.lasting {
		x.patience = 500 * time.Millisecond
	}
	var err error
	if x.server, err = Listen(ctx, "udp", loopback4, server); err != nil {
		r.open = err
		return
	}
	defer x.server.Close()
	if x.client, err = Listen(ctx, "udp", loopback4, client); err != nil {
		r.open = err
		return
	}
	defer x.client.Close()
	at := x.server
	if r.client {
		at = x.client
	}
	r.faults = at.Faults()
	r.err = x.run(ctx)
	st := at.Stats()
	r.sent, r.lost = st.Sent, st.SendLost
}

func (r *sweptRun) hits() bool { return r.open != nil || r.faults.Hits()[0] > 0 }

// names tells that an error says what failed: the errno, and the call or the option.
func (r *sweptRun) names(err error) bool {
	rule := r.plan.Rules[0]
	text := err.Error()
	switch rule.Call {
	case fault.Recv:
		return errors.Is(err, rule.Action.Errno) && strings.Contains(text, "recvmmsg")
	case fault.Send:
		return errors.Is(err, rule.Action.Errno) && strings.Contains(text, "sendmsg")
	}
	return errors.Is(err, rule.Action.Errno) && strings.Contains(text, "open udp") || strings.Contains(text, "set udp")
}

// verdict tells what is wrong with how a run went.
func (s *quicSweep) verdict(r *sweptRun) error {
	rule := r.plan.Rules[0]
	switch {
	case r.open != nil && !r.names(r.open):
		return fmt.Errorf("an error that does not name the option: %w", r.open)
	case r.open != nil, !r.hits():
		return nil
	}
	if n := r.faults.Calls()[rule.Call]; n > 5_000 {
		return fmt.Errorf("%d calls in %v", n, r.took)
	}
	dead := rule.Action.Errno == syscall.EBADF || rule.Action.Errno == syscall.ENOTSOCK || rule.Call == fault.Recv && rule.Action.Errno == syscall.ENOTCONN
	var idle *quic.IdleTimeoutError
	var handshake *quic.HandshakeTimeoutError
	timeout := errors.As(r.err, &idle) || errors.As(r.err, &handshake) || errors.Is(r.err, context.DeadlineExceeded) ||
		errors.Is(r.err, os.ErrDeadlineExceeded)
	switch {
	case r.err == nil:
		return nil
	case rule.Call == fault.Send && dead && !s.lasting:
		return fmt.Errorf("one answer that was not so ended it: %w", r.err) // it is tried again
	case dead && (rule.Call == fault.Send || rule.Call == fault.Recv):
		// The other end hears nothing, or that the server, whose reads have ended, takes no connection that is not ready.
		var refused *quic.TransportError
		if r.names(r.err) || timeout || errors.As(r.err, &refused) && refused.Remote && refused.ErrorCode == quic.ConnectionRefused {
			return nil
		}
	case s.lasting && timeout: // what is lost for ever
		return nil
	}
	return r.err
}

// TestSweepQUIC is the short one: the first calls of each kind, each with one errno.
func TestSweepQUIC(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		t.Run(fmt.Sprintf("lasting %v", lasting), func(t *testing.T) {
			sweepQUIC(t, quicSweep{lasting: lasting, quick: true, most: 12})
		})
	}
}
