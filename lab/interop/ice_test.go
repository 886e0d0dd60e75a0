package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/pion/ice/v4"
)

// TestPion has two agents of pion/ice find each other over host candidates, and exchange datagrams: a multiplexer of
// theirs over a dgram.Conn on one side or both.
func TestPion(t *testing.T) {
	for _, c := range []struct {
		name string
		both bool
	}{{"one side", false}, {"both sides", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, ours := agent(t, true)
			b, theirs := agent(t, c.both)
			near, far := pair(t, a, b)
			checkLocal(t, a, ours)
			checkLocal(t, b, theirs)
			for i := range 200 {
				pass(t, near, far, fmt.Sprintf("to %d", i))
				pass(t, far, near, fmt.Sprintf("fro %d", i))
			}
		})
	}
}

// agent has its socket from pion, or a dgram.Conn whose address it returns.
func agent(t *testing.T, ours bool) (*ice.Agent, net.Addr) {
	t.Helper()
	options := []ice.AgentOption{
		ice.WithNetworkTypes([]ice.NetworkType{ice.NetworkTypeUDP4}),
		ice.WithCandidateTypes([]ice.CandidateType{ice.CandidateTypeHost}),
		ice.WithMulticastDNSMode(ice.MulticastDNSModeDisabled),
		ice.WithIncludeLoopback(),
		ice.WithIPFilter(func(ip net.IP) bool { return ip.IsLoopback() }),
	}
	var local net.Addr
	if ours {
		c := listen(t)
		local = c.LocalAddr()
		mux := ice.NewUDPMuxDefault(ice.UDPMuxParams{UDPConn: c})
		t.Cleanup(func() {
			if err := mux.Close(); err != nil {
				t.Error(err)
			}
		})
		options = append(options, ice.WithUDPMux(mux))
	}
	a, err := ice.NewAgentWithOptions(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, local
}

// pair connects two agents. What they have to tell each other, a signalling server would carry.
func pair(t *testing.T, a, b *ice.Agent) (near, far *ice.Conn) {
	t.Helper()
	introduce(t, a, b)
	introduce(t, b, a)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		name, secret, err := a.GetLocalUserCredentials()
		if err == nil {
			far, err = b.Accept(ctx, name, secret)
		}
		accepted <- err
	}()
	name, secret, err := b.GetLocalUserCredentials()
	if err == nil {
		near, err = a.Dial(ctx, name, secret)
	}
	if err := errors.Join(err, <-accepted); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// introduce has to hear of each candidate of from.
func introduce(t *testing.T, from, to *ice.Agent) {
	t.Helper()
	err := from.OnCandidate(func(c ice.Candidate) {
		if c == nil { // that was the last
			return
		}
		if err := to.AddRemoteCandidate(c); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := from.GatherCandidates(); err != nil {
		t.Fatal(err)
	}
}

// checkLocal wants the agent to use the socket that it was given, if any.
func checkLocal(t *testing.T, a *ice.Agent, local net.Addr) {
	t.Helper()
	selected, err := a.GetSelectedCandidatePair()
	if err != nil || selected == nil {
		t.Fatalf("no pair is selected: %v", err)
	}
	if local != nil && selected.Local.Port() != local.(*net.UDPAddr).Port {
		t.Errorf("connected from port %d, not from %v", selected.Local.Port(), local)
	}
}

// pass sends a text, and wants it to arrive.
func pass(t *testing.T, from, to *ice.Conn, text string) {
	t.Helper()
	if _, err := from.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := to.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, err := to.Read(b)
	if err != nil || string(b[:n]) != text {
		t.Fatalf("sent %q, received %q, %v", text, b[:n], err)
	}
}
