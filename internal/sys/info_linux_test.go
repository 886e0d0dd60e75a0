//go:build linux

package sys

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestInfo(t *testing.T) {
	t.Parallel()
	k := New()
	client, server := tcpPair(t, k)
	if n, err := k.Write(client, vectorOf("hello"), false); n != 5 || err != nil {
		t.Fatalf("writes %d, %v", n, err)
	}
	await(t, server, unix.POLLIN)
	got, err := k.Info(server)
	if err != nil || got.BytesReceived != 5 || got.SendMSS <= 0 || got.CongestionWindow <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := k.Info(client); err != nil || got.RTT <= 0 || got.MinRTT > got.RTT || got.NotSentBytes != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestInfoOfOthers: "EOPNOTSUPP or ENOPROTOOPT of what is no TCP socket". What is not connected has measured nothing.
func TestInfoOfOthers(t *testing.T) {
	t.Parallel()
	k := New()
	if got, err := k.Info(socketOf(t, k, IPv6, TCP)); err != nil || got.MinRTT != 0 || got.RTT != 0 || got.BytesAcked != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, fd := range []int{socketOf(t, k, IPv4, UDP), socketOf(t, k, UnixFamily, UnixStream)} {
		if _, err := k.Info(fd); err != unix.ENOPROTOOPT && err != unix.EOPNOTSUPP {
			t.Errorf("%v", err)
		}
	}
}

// TestStreamOptions reads back what was set, in the contract's units.
func TestStreamOptions(t *testing.T) {
	t.Parallel()
	k := New()
	fd := socketOf(t, k, IPv4, TCP)
	for _, c := range []struct {
		o             Option
		set, want     int
		level, number int // of the integer that the kernel has; 0: it has none
	}{
		{NoDelay, 1, 1, unix.IPPROTO_TCP, unix.TCP_NODELAY},
		{KeepAlive, 1, 1, unix.SOL_SOCKET, unix.SO_KEEPALIVE},
		{KeepIdle, 33, 33, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
		{KeepInterval, 34, 34, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
		{KeepCount, 35, 35, unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
		{UserTimeout, 3600, 3600, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
		{DeferAccept, 1, 1, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT},
		{NotSentLowAt, 37, 37, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT},
		{Linger, 0, 0, 0, 0},
		{Linger, 7, 7, 0, 0},
		{Linger, -1, -1, 0, 0},
	} {
		if err := k.SetOption(fd, c.o, c.set); err != nil {
			t.Errorf("option %d = %d: %v", c.o, c.set, err)
		}
		if got, err := k.GetOption(fd, c.o); got != c.want || err != nil {
			t.Errorf("option %d = %d: %d, %v", c.o, c.set, got, err)
		}
		if c.level == 0 {
			continue
		}
		if got, err := unix.GetsockoptInt(fd, c.level, c.number); got != c.want || err != nil {
			t.Errorf("option %d = %d: the kernel says %d, %v", c.o, c.set, got, err)
		}
	}
	if err := k.SetOption(fd, MaxSegment, 900); err != nil { // older kernels tell it of connections alone
		t.Error(err)
	}
	if l, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER); l.Onoff != 0 || err != nil {
		t.Errorf("lingers: %+v, %v", l, err)
	}
}
