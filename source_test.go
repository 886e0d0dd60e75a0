package weir

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirnet/weir/internal/memsys"
)

// "A token carries its slot's generation, so that an event that was in flight when its source closed finds
// nobody, even if the slot has a new tenant."
func TestSourceTableModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var table sourceTable
		live, gone := map[uint64]pollable{}, map[uint64]bool{}
		var tokens []uint64 // of live
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for token, s := range live {
					if table.lookup(token) != s {
						t.Fatalf("token %x finds another source", token)
					}
				}
				for token := range gone {
					if table.lookup(token) != nil {
						t.Fatalf("token %x was removed and finds somebody", token)
					}
				}
				if table.len() != len(live) {
					t.Fatalf("length %d, want %d", table.len(), len(live))
				}
			},
			"add": func(t *rapid.T) {
				s := &UDP{}
				token := table.add(s)
				if live[token] != nil || gone[token] {
					t.Fatalf("token %x was given before", token)
				}
				live[token] = s
				tokens = append(tokens, token)
			},
			"remove": func(t *rapid.T) {
				if len(tokens) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(tokens)-1).Draw(t, "i")
				table.remove(tokens[i])
				gone[tokens[i]] = true
				delete(live, tokens[i])
				tokens = slices.Delete(tokens, i, i+1)
			},
		})
		if most := len(live) + len(gone); len(table.slots) > most {
			t.Fatalf("%d slots", len(table.slots))
		}
	})
}

// Slots are used again: a million short-lived sockets need no more of them than live at a time.
func TestSourceTableReuses(t *testing.T) {
	t.Parallel()
	var table sourceTable
	table.add(&UDP{})
	for range 10_000 {
		table.remove(table.add(&UDP{}))
	}
	if len(table.slots) != 2 {
		t.Errorf("%d slots for 2 sources", len(table.slots))
	}
}

// Two sockets are ready. The first one's callback closes the second and opens a third in its place: the
// second hears no more of datagrams, and the third nothing that was not for it.
func TestClosedInFlight(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var sockets [2]*UDP
		var third *UDP
		got, closed := 0, 0
		for i := range sockets {
			u, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{
				OnDatagram: func(u *UDP, d *Datagram) {
					got++
					for _, other := range sockets {
						if other != u {
							_ = other.Close()
						}
					}
					third = listen(t, l, Bound{}, func(_ *UDP, d *Datagram) {
						if string(d.Payload) != "third" {
							t.Errorf("the new socket got %q", d.Payload)
						}
						_ = l.Close()
					})
					if err := u.Send([]byte("third"), third.LocalAddr()); err != nil {
						t.Error(err)
					}
				},
				OnClose: func(*UDP, error) { closed++ },
			})
			if err != nil {
				t.Fatal(err)
			}
			sockets[i] = u
		}
		sender := listen(t, l, Bound{}, nil)
		for _, u := range sockets {
			sendNow(t, sender, u.LocalAddr(), 1)
		}
		run(t, l)
		if got != 1 || closed != 2 {
			t.Errorf("%d datagrams and %d closes, want 1 and 2", got, closed)
		}
	})
}

// What the poller says of a socket that is gone is dropped.
func TestStaleEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		first := listen(t, l, Bound{}, nil)
		token := first.token
		_ = first.Close()
		second := listen(t, l, Bound{}, nil)
		if uint32(second.token) != uint32(token) || second.token == token {
			t.Fatalf("tokens %x and %x are not two tenants of one slot", token, second.token)
		}
		if l.table.lookup(token) != nil || l.table.lookup(second.token) != second {
			t.Error("the old token finds the new tenant")
		}
	})
}
