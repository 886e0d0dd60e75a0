package weir

import (
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// leave has the network have room for so many more descriptors, and tells how many are open.
func leave(t *testing.T, net *memsys.Net, more int) (opened int) {
	t.Helper()
	k := net.Backend().Kernel
	for limit := 1; ; limit++ {
		net.SetMaxDescriptors(limit)
		fd, err := k.Socket(sys.IPv4, sys.UDP)
		if err == syscall.EMFILE {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = k.Close(fd)
		net.SetMaxDescriptors(limit - 1 + more)
		return limit - 1
	}
}

// readsEnd tells what a client reads that no loop has.
func readsEnd(t *testing.T, k sys.Kernel, fd int) {
	t.Helper()
	var b [8]byte
	if n, err := k.Read(fd, b[:]); n != 0 || err != nil {
		t.Errorf("a client that was refused reads %d, %v; want the end", n, err)
	}
}

// TestListenerFull: who waits when there is no descriptor reads an end, OnError hears of it once, and the descriptor of a
// connection that is closed is used at once.
func TestListenerFull(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		k := net.Backend().Kernel
		l := loopIn(t, net, Config{})
		var heard told
		var open []*Conn
		ln, err := l.ListenTCP(loopback4, ListenerConfig{}, ListenerHandler{
			Conn:    ConnHandler{OnOpen: func(c *Conn) { open = append(open, c) }},
			OnError: heard.onListenerError,
		})
		if err != nil {
			t.Fatal(err)
		}
		knock(t, k, ln.Addr())
		at := func(d time.Duration, fn func()) { l.AfterFunc(d, fn) }
		var clients []int
		at(1*time.Second, func() {
			for range 5 {
				clients = append(clients, knock(t, k, ln.Addr()))
				_, _ = k.Write(clients[len(clients)-1], &sys.Vector{Bufs: [][]byte{{1}}}, false)
			}
			leave(t, net, 0)
		})
		at(1*time.Second+time.Millisecond, func() {
			for _, fd := range clients {
				readsEnd(t, k, fd)
			}
			if s := l.Stats().Streams; s.AcceptRefused != 5 || s.Accepted != 1 || len(heard) != 1 || heard.count(syscall.EMFILE) != 1 {
				t.Errorf("%d refused, %d accepted, OnError heard %v", s.AcceptRefused, s.Accepted, heard)
			}
			leave(t, net, 1)
			knock(t, k, ln.Addr()) // it waits, as the listener rests
			_ = open[0].Close()
		})
		at(1*time.Second+time.Millisecond+time.Microsecond, func() {
			if len(open) != 2 {
				t.Errorf("%d were accepted once there was a descriptor", len(open))
			}
		})
		at(2*time.Second, func() {
			leave(t, net, 1)
			clients = append(clients, knock(t, k, ln.Addr()))
		})
		at(3*time.Second, func() {
			readsEnd(t, k, clients[5])
			if len(heard) != 2 {
				t.Errorf("OnError heard %v, want a second one as it could accept meanwhile", heard)
			}
			leave(t, net, 2) // freed where the loop does not see it
			knock(t, k, ln.Addr())
		})
		at(3*time.Second+longestAcceptRest, func() {
			if len(open) != 3 {
				t.Errorf("%d were accepted, want 3", len(open))
			}
			if turns := l.Turn(); turns > 60 {
				t.Errorf("%d turns", turns)
			}
			_ = l.Close()
		})
		run(t, l)
	})
}

// TestListenerLastDescriptor: that accept(2) wants a descriptor before it looks whether somebody waits is no failure.
func TestListenerLastDescriptor(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var heard told
		opened := 0
		ln := listenTold(t, l, &heard, func() { opened++ })
		knock(t, net.Backend().Kernel, ln.Addr())
		leave(t, net, 1)
		runFor(t, l, time.Second)
		if s := l.Stats().Streams; opened != 1 || len(heard) != 0 || s.AcceptErrors != 0 || l.Turn() > 10 {
			t.Errorf("%d opened, %d errors, OnError heard %v, %d turns", opened, s.AcceptErrors, heard, l.Turn())
		}
	})
}

// TestListenerNoReserve: where the descriptor that is kept for it is gone, nobody is refused; they are served when one is
// free.
func TestListenerNoReserve(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		k := net.Backend().Kernel
		l := loopIn(t, net, Config{Faults: plan(t, "socket#2x3=EMFILE; accept#1x3=EMFILE")})
		var heard told
		opened := 0
		ln := listenTold(t, l, &heard, func() { opened++ })
		for range 3 {
			knock(t, k, ln.Addr())
		}
		runFor(t, l, time.Second)
		if s := l.Stats().Streams; opened != 3 || s.AcceptRefused != 0 || len(heard) != 1 || l.Turn() > 40 {
			t.Errorf("%d opened, %d refused, OnError heard %v, %d turns", opened, s.AcceptRefused, heard, l.Turn())
		}
	})
}
