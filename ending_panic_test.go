package weir

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// breaking is a callback that breaks the loop when its kind is the one to do it.
type breaking struct {
	kind  string
	goes  func() // what it does then: does not return
	times int    // how often; 0 is once
}

func (b *breaking) call(kind string) {
	if kind == b.kind && b.goes != nil {
		goes := b.goes
		if b.times--; b.times <= 0 {
			b.goes = nil
		}
		breakHere(goes)
	}
}

//go:noinline
func breakHere(goes func()) { goes() }

var brokenKinds = []string{"OnDatagram", "timer", "tick", "post", "next turn", "task", "OnDrain", "OnError", "OnClose"}

// openBroken makes a loop on which every kind of callback will be called, and the list of what OnClose hears.
func openBroken(t *testing.T, net *memsys.Net, b *breaking) (l *Loop, heard *[]error) {
	t.Helper()
	l = loopIn(t, net, Config{})
	heard = new([]error)
	open := func() *UDP {
		u, err := l.ListenUDP(loopback4, UDPConfig{MaxQueuedSends: 1}, UDPHandler{
			OnDatagram: func(*UDP, *Datagram) { b.call("OnDatagram") },
			OnDrain:    func(*UDP) { b.call("OnDrain") },
			OnError:    func(*UDP, error) { b.call("OnError") },
			OnClose:    func(_ *UDP, err error) { *heard = append(*heard, err); b.call("OnClose") },
		})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	sockets := []*UDP{open(), open(), open(), open(), open(), open()}
	for range 20 {
		sendNow(t, sockets[0], sockets[1].LocalAddr(), 1)
	}
	l.AfterFunc(0, func() { b.call("timer") })
	l.Every(time.Millisecond, func() { b.call("tick") })
	_ = l.Post(func() { b.call("post") })
	l.NextTurn(func() { b.call("next turn") })
	l.Work(func() bool { b.call("task"); return false })
	l.AfterFunc(10*time.Millisecond, func() {
		_, _ = sockets[2].Send(nil, sockets[1].LocalAddr()), sockets[2].Send(nil, sockets[3].LocalAddr())
		_ = sockets[4].Send(nil, unreachable)
		_ = sockets[4].Close() // its OnError and its OnClose are both to come
	})
	l.AfterFunc(time.Second, func() { _ = sockets[5].Close() })
	l.AfterFunc(2*time.Second, func() { _ = l.Close() })
	return l, heard
}

func checkBroken(t *testing.T, l *Loop, net *memsys.Net, heard []error) {
	t.Helper()
	if len(heard) != 6 {
		t.Errorf("%d calls of OnClose, want 6: %v", len(heard), heard)
	}
	if i := slices.IndexFunc(heard, func(err error) bool { return err != nil && err != ErrClosed }); i >= 0 {
		t.Errorf("OnClose heard %v", heard[i])
	}
	checkEnded(t, l, net)
}

// "A callback's panic passes through with its own stack." "Whatever ends it, every source is closed and its
// OnClose has run when Run is left."
func TestPanics(t *testing.T) {
	for _, kind := range brokenKinds {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				b := &breaking{kind: kind, goes: func() { panic("broken: " + kind) }}
				l, heard := openBroken(t, net, b)
				got, stack := recovered(func() { _ = l.Run(t.Context()) })
				if got != "broken: "+kind {
					t.Errorf("recovered %v", got)
				}
				for _, frame := range []string{"weir.breakHere", "weir.openBroken.func", "weir.(*Loop).Run"} {
					if !strings.Contains(stack, frame) {
						t.Errorf("no %s in the stack:\n%s", frame, stack)
					}
				}
				checkBroken(t, l, net, *heard)
			})
		})
	}
}

// recovered is what fn panics with, and the stack as it is then.
func recovered(fn func()) (value any, stack string) {
	defer func() {
		value = recover()
		stack = string(debug.Stack())
	}()
	fn()
	return nil, ""
}

// "… and so does runtime.Goexit."
func TestGoexits(t *testing.T) {
	for _, kind := range brokenKinds {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l, heard := openBroken(t, net, &breaking{kind: kind, goes: runtime.Goexit})
				returned, gone := false, make(chan struct{})
				go func() {
					defer close(gone)
					_ = l.Run(t.Context())
					returned = true
				}()
				<-gone
				if returned {
					t.Error("Run returned")
				}
				checkBroken(t, l, net, *heard)
			})
		})
	}
}

// An OnClose that panics, or ends the goroutine, while all are closed does not cost the others theirs.
func TestOnCloseBreaksDuringTheEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		goes func()
	}{
		{"panic", func() { panic("broken") }},
		{"Goexit", runtime.Goexit},
	} {
		for _, times := range []int{1, 6} {
			t.Run(fmt.Sprint(c.name, " ", times), func(t *testing.T) {
				inBubble(t, func(t *testing.T, net *memsys.Net) {
					l := loopIn(t, net, Config{})
					b := &breaking{kind: "OnClose", goes: c.goes, times: times}
					var heard []error
					for range 6 {
						_, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{OnClose: func(_ *UDP, err error) {
							heard = append(heard, err)
							b.call("OnClose")
						}})
						if err != nil {
							t.Fatal(err)
						}
					}
					l.AfterFunc(0, func() { _ = l.Close() })
					gone, value := make(chan struct{}), any(nil)
					go func() {
						defer close(gone)
						value, _ = recovered(func() { _ = l.Run(t.Context()) })
					}()
					<-gone
					if c.name == "panic" && value != "broken" {
						t.Errorf("recovered %v", value)
					}
					checkBroken(t, l, net, heard)
				})
			})
		}
	}
}

// A loop that breaks on the real kernel gives its descriptors back: TestMain counts them.
func TestPanicOnTheKernel(t *testing.T) {
	for range 5 {
		l := newLoop(t, Config{})
		u := listen(t, l, Bound{}, func(*UDP, *Datagram) { panic("broken") })
		sendNow(t, u, u.LocalAddr(), 40)
		if value, _ := recovered(func() { _ = l.Run(t.Context()) }); value != "broken" {
			t.Errorf("recovered %v", value)
		}
		if !isDone(l) || u.Stats().RecvBufferBytes != 0 {
			t.Error("it is not closed")
		}
	}
}
