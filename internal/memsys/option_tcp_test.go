package memsys_test

import (
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// TestStreamOptions has what Linux 6.18 reads back: before anything is set, and after each value.
func TestStreamOptions(t *testing.T) {
	const kept = -99 // EINVAL
	values := []int{-1, 0, 1, 2, 5, 10, 100, 40_000}
	for _, c := range []struct {
		name    string
		o       sys.Option
		initial int
		after   [8]int
	}{
		{"NoDelay", sys.NoDelay, 0, [8]int{1, 0, 1, 1, 1, 1, 1, 1}},
		{"KeepAlive", sys.KeepAlive, 0, [8]int{1, 0, 1, 1, 1, 1, 1, 1}},
		{"KeepIdle", sys.KeepIdle, 7200, [8]int{kept, kept, 1, 2, 5, 10, 100, kept}},
		{"KeepInterval", sys.KeepInterval, 75, [8]int{kept, kept, 1, 2, 5, 10, 100, kept}},
		{"KeepCount", sys.KeepCount, 9, [8]int{kept, kept, 1, 2, 5, 10, 100, kept}},
		{"UserTimeout", sys.UserTimeout, 0, [8]int{kept, 0, 1, 2, 5, 10, 100, 40_000}},
		{"DeferAccept", sys.DeferAccept, 0, [8]int{0, 0, 1, 3, 7, 15, 127, 29_887}},
		{"NotSentLowAt", sys.NotSentLowAt, 0, [8]int{-1, 0, 1, 2, 5, 10, 100, 40_000}},
		{"MaxSegment", sys.MaxSegment, 536, [8]int{kept, 536, kept, kept, kept, kept, 100, kept}},
		{"Linger", sys.Linger, -1, [8]int{-1, 0, 1, 2, 5, 10, 100, 40_000}},
		{"TOS", sys.TOS, 0, [8]int{252, 0, 0, 0, 4, 8, 100, 64}},
		{"TrafficClass", sys.TrafficClass, 0, [8]int{0, 0, 0, 0, 4, 8, 100, kept}},
		{"TTL", sys.TTL, 64, [8]int{64, kept, 1, 2, 5, 10, 100, kept}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			fd := h.socket(sys.IPv6, sys.TCP)
			if got, err := h.k.GetOption(fd, c.o); got != c.initial || err != nil {
				t.Errorf("initially %d, %v", got, err)
			}
			for i, value := range values {
				err := h.k.SetOption(fd, c.o, value)
				if c.after[i] == kept {
					h.want(err, syscall.EINVAL)
					continue
				}
				h.must(err)
				if got, err := h.k.GetOption(fd, c.o); got != c.after[i] || err != nil {
					t.Errorf("after %d: %d, %v; want %d", value, got, err, c.after[i])
				}
			}
		})
	}
}

// TestOptionsOfOthers has the errnos of options that another kind of socket has.
func TestOptionsOfOthers(t *testing.T) {
	const proto, op, inval = syscall.ENOPROTOOPT, syscall.EOPNOTSUPP, syscall.EINVAL
	for _, c := range []struct {
		name     string
		f        sys.Family
		k        sys.Kind
		o        sys.Option
		set, get error
	}{
		{"TCP's of UDP", sys.IPv4, sys.UDP, sys.NoDelay, proto, op},
		{"TCP's of UDP over IPv6", sys.IPv6, sys.UDP, sys.MaxSegment, proto, proto},
		{"UDP's of TCP", sys.IPv4, sys.TCP, sys.RecvJoined, proto, op},
		{"UDP's of TCP over IPv6", sys.IPv6, sys.TCP, sys.SegmentSize, proto, proto},
		{"multicast of TCP", sys.IPv4, sys.TCP, sys.MulticastTTL, inval, nil},
		{"multicast of TCP over IPv6", sys.IPv6, sys.TCP, sys.MulticastHopLimit, proto, nil},
		{"KeepAlive of UDP", sys.IPv4, sys.UDP, sys.KeepAlive, nil, nil},
		{"Linger of UDP", sys.IPv4, sys.UDP, sys.Linger, nil, nil},
		{"IP's of unix", sys.UnixFamily, sys.UnixStream, sys.TTL, op, op},
		{"TCP's of unix", sys.UnixFamily, sys.UnixStream, sys.NoDelay, op, op},
		{"IPv6Only of unix", sys.UnixFamily, sys.Unixgram, sys.IPv6Only, op, op},
		{"ReusePort of unix", sys.UnixFamily, sys.UnixStream, sys.ReusePort, op, nil},
		{"ReuseAddr of unix", sys.UnixFamily, sys.UnixStream, sys.ReuseAddr, nil, nil},
		{"buffer of unix", sys.UnixFamily, sys.Unixgram, sys.SendBuffer, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			fd := h.socket(c.f, c.k)
			h.want(h.k.SetOption(fd, c.o, 1), c.set)
			_, err := h.k.GetOption(fd, c.o)
			h.want(err, c.get)
		})
	}
	h := newHost(t)
	_, err := h.k.Info(h.unix())
	h.want(err, op)
}

// TestAcceptedHaveOptions: what a listener was told is told to its connections, but for DeferAccept.
func TestAcceptedHaveOptions(t *testing.T) {
	h := newHost(t)
	l, addr := h.listens(1)
	for o, value := range map[sys.Option]int{
		sys.RecvBuffer: 10_000, sys.SendBuffer: 10_000, sys.NoDelay: 1, sys.KeepAlive: 1, sys.UserTimeout: 77,
		sys.DeferAccept: 5, sys.Linger: 7, sys.NotSentLowAt: 9999, sys.MaxSegment: 1000, sys.TOS: 16, sys.TTL: 33,
	} {
		h.set(l, o, value)
	}
	h.writes(h.dials(addr), "x")
	conn := h.accepts(l)
	for o, want := range map[sys.Option]int{
		sys.RecvBuffer: 20_000, sys.SendBuffer: 20_000, sys.NoDelay: 1, sys.KeepAlive: 1, sys.UserTimeout: 77,
		sys.DeferAccept: 0, sys.Linger: 7, sys.NotSentLowAt: 9999, sys.MaxSegment: 988, sys.TOS: 16, sys.TTL: 33,
	} {
		if got, err := h.k.GetOption(conn, o); got != want || err != nil {
			t.Errorf("option %d is %d, %v; want %d", o, got, err, want)
		}
	}
}
