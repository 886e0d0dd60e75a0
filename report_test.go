package weir

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// logTo makes a logger that writes lines without the time.
func logTo(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func wantReports(t *testing.T, b *bytes.Buffer, want ...string) {
	t.Helper()
	for i, w := range want {
		want[i] = `level=WARN msg="weir: slow callback" ` + w
	}
	wantOrder(t, strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), want)
}

// "Logger hears of slow callbacks, at most one a second."
func TestReports(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		var log bytes.Buffer
		l := loopIn(t, net, Config{Logger: logTo(&log)})
		after := func(d, cost time.Duration) { l.AfterFunc(d, func() { time.Sleep(cost) }) }
		after(0, 10*time.Millisecond) // "how long a callback may take"
		after(100*time.Millisecond, 11*time.Millisecond)
		for i := range 5 {
			after(200*time.Millisecond, time.Duration(i+20)*time.Millisecond)
		}
		after(1110*time.Millisecond, 12*time.Millisecond) // 1 s and 11 ms after the first report
		after(2000*time.Millisecond, 13*time.Millisecond)
		after(4*time.Second, 14*time.Millisecond)
		l.AfterFunc(5*time.Second, func() { _ = l.Close() })
		run(t, l)
		wantReports(t, &log,
			"source=timer took=11ms unreported=0",
			"source=timer took=12ms unreported=5",
			"source=timer took=14ms unreported=1",
		)
		if n := l.Stats().Overruns; n != 9 {
			t.Errorf("%d overruns, want 9", n)
		}
	})
}

// A report names the kind of callback that was slow.
func TestReportNamesTheSource(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		var log bytes.Buffer
		l := loopIn(t, net, Config{Logger: logTo(&log), SlowCallback: time.Millisecond})
		sleep := func() { time.Sleep(1500 * time.Microsecond) }
		u, err := l.ListenUDP(loopback4, UDPConfig{MaxQueuedSends: 1}, UDPHandler{
			OnDatagram: func(*UDP, *Datagram) { sleep() },
			OnDrain:    func(*UDP) { time.Sleep(1600 * time.Microsecond) },
			OnClose:    func(*UDP, error) { time.Sleep(1700 * time.Microsecond) },
		})
		if err != nil {
			t.Fatal(err)
		}
		each := []func(){
			func() { l.AfterFunc(time.Nanosecond, sleep) },
			func() { _ = l.Post(sleep) },
			func() { l.NextTurn(sleep) },
			func() { l.Work(func() bool { sleep(); return false }) },
			func() { _ = u.Send(nil, u.LocalAddr()) },
			func() { u.Pause(); _, _ = u.Send(nil, u.LocalAddr()), u.Send(nil, u.LocalAddr()) },
			func() { _ = u.Close() },
		}
		for i, fn := range each {
			l.AfterFunc(time.Duration(2*i+1)*time.Second, fn)
		}
		l.AfterFunc(20*time.Second, func() { _ = l.Close() })
		run(t, l)
		wantReports(t, &log, // weir:ports in memory they are given out in order
			"source=timer took=1.5ms unreported=0",
			`source="posted function" took=1.5ms unreported=0`,
			`source="next-turn function" took=1.5ms unreported=0`,
			"source=task took=1.5ms unreported=0",
			`source="udp 127.0.0.1:32768" took=1.5ms unreported=0`,
			`source="udp 127.0.0.1:32768" took=1.6ms unreported=0`,
			`source="udp 127.0.0.1:32768" took=1.7ms unreported=0`,
		)
	})
}

// "Default: 10 ms. Negative: never."
func TestSlowCallbackLimit(t *testing.T) {
	for _, c := range []struct {
		limit time.Duration
		want  uint64
	}{{0, 2}, {time.Millisecond, 3}, {time.Second, 1}, {-1, 0}} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				var log bytes.Buffer
				l := loopIn(t, net, Config{Logger: logTo(&log), SlowCallback: c.limit})
				costs := []time.Duration{time.Microsecond, 2 * time.Millisecond, 11 * time.Millisecond, 2 * time.Second}
				l.Work(func() bool {
					time.Sleep(costs[0])
					if costs = costs[1:]; len(costs) == 0 {
						_ = l.Close()
					}
					return true
				})
				run(t, l)
				if n := l.Stats().Overruns; n != c.want {
					t.Errorf("%d overruns, want %d", n, c.want)
				}
				if logged := log.Len() > 0; logged != (c.want > 0) {
					t.Errorf("log: %q", log.String())
				}
			})
		})
	}
}
