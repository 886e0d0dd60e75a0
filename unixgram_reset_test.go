package weir

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/sys"
)

// The error of a peer that turns to others before it has read all goes to OnError: by a receive, where the socket is
// paused, without a turn more, and where a Send finds it, whose datagram is then tried again.
func TestUnixgramReset(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(u *Unixgram)
		then  func(u *Unixgram) error
	}{
		{"received", func(*Unixgram) {}, func(*Unixgram) error { return nil }},
		{"paused", (*Unixgram).Pause, func(*Unixgram) error { return nil }},
		{"sent", (*Unixgram).Pause, func(u *Unixgram) error { return u.Send([]byte("again"), "") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				raw, own, name := k.backend.Kernel, unixName(t, "u"), unixName(t, "peer")
				fd, err := raw.Socket(sys.UnixFamily, sys.Unixgram)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = raw.Close(fd) })
				l := newLoop(t, Config{Kernel: k})
				told := 0
				if err := raw.BindUnix(fd, name); err != nil {
					t.Fatal(err)
				}
				u := dialGram(t, l, own, name, UnixgramHandler{OnError: func(_ *Unixgram, err error) {
					if told++; !errors.Is(err, syscall.ECONNRESET) {
						t.Error(err)
					}
					l.AfterFunc(20*time.Millisecond, func() { _ = l.Close() }) // so that a second one would be seen
				}})
				if err := raw.ConnectUnix(fd, own); err != nil {
					t.Fatal(err)
				}
				c.begin(u)
				sendGram(t, u, "x", "")
				l.AfterFunc(5*time.Millisecond, func() {
					if err := raw.ConnectUnix(fd, ""); err != nil {
						t.Error(err)
					}
					if err := c.then(u); err != nil {
						t.Error(err)
					}
				})
				l.AfterFunc(5*time.Second, func() { _ = l.Close() })
				run(t, l)
				if told != 1 || l.Turn() > 20 {
					t.Errorf("told %d times, in %d turns", told, l.Turn())
				}
			})
		})
	}
}
