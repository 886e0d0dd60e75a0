package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

func testRows() []row {
	whole := millis(1990 * ms)
	return []row{
		{
			Net: overUDP, Bound: "unbounded", TicksDue: 100, Lag: lags{whole, whole, whole},
			Sent: 1_204_311, Delivered: 998, KernelDropped: 1_203_036,
		},
		{
			Net: overUDP, Bound: "count:32", TicksDue: 100, TicksFired: 31, Lag: lags{millis(44 * ms), millis(62 * ms), millis(62_500 * time.Microsecond)},
			Sent: 1_100_000, Delivered: 990, KernelDropped: 1_098_733,
		},
		{
			Net: overUDP, Bound: "share", TicksDue: 100, TicksFired: 100, Lag: lags{millis(900 * time.Microsecond), millis(2 * ms), millis(2_123_456)},
			Sent: 1_000_000, Delivered: 980, KernelDropped: 998_743,
		},
	}
}

// testStreamRows are the same over TCP.
func testStreamRows() []row {
	rows := testRows()
	for i, speed := range []float64{18.0625, 23.456, 121.4} {
		rows[i].Net, rows[i].ReadSpeed = overTCP, &speed
		rows[i].Sent, rows[i].Delivered, rows[i].KernelDropped = 60e6, uint64(speed*2e6), 0
	}
	return rows
}

func testConfig() demoConfig {
	return demoConfig{
		duration: 2 * time.Second, handler: 2 * ms,
		bounds: []weir.Bound{weir.Unbounded(), weir.Count(32), weir.Share()},
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	const want = `Sockets and timers of a loop share one goroutine: can a flooded socket starve a timer?

A flood (as fast as it goes) of a socket whose handler takes 2ms a datagram,
beside a timer of 20ms; 2s for each bound.

  bound      ticks due  fired  lag p50      p99      max       sent  delivered    dropped  left
  unbounded        100      0   1.99 s   1.99 s   1.99 s  1,204,311        998  1,203,036   277
  count:32         100     31  44.0 ms  62.0 ms  62.5 ms  1,100,000        990  1,098,733   277
  share            100    100   900 µs  2.00 ms  2.12 ms  1,000,000        980    998,743   277

Unbounded, the timer was starved (0 of 100 ticks, up to 1.99 s late); with count:32 it was held up
(31 of 100, up to 62.5 ms late); under share it kept time (100 of 100, up to 2.12 ms late).

A handler of 2ms takes at most 1,000 datagrams in 2s, under any bound; the kernel must drop the rest.

` + footer + footerUDP + "\n"
	var b strings.Builder
	if err := printTable(&b, testConfig(), testRows()); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTableTCP(t *testing.T) {
	t.Parallel()
	const want = `Sockets and timers of a loop share one goroutine: can a flooded socket starve a timer?

A flood (as fast as it goes) of a TCP connection whose handler takes 2ms a read,
beside a timer of 20ms; 2s for each bound.

  bound      ticks due  fired  lag p50      p99      max  MB/s read
  unbounded        100      0   1.99 s   1.99 s   1.99 s       18.1
  count:32         100     31  44.0 ms  62.0 ms  62.5 ms       23.5
  share            100    100   900 µs  2.00 ms  2.12 ms        121

Unbounded, the timer was starved (0 of 100 ticks, up to 1.99 s late); with count:32 it was held up
(31 of 100, up to 62.5 ms late); under share it kept time (100 of 100, up to 2.12 ms late); the
least was read unbounded: 18.1 MB/s, against 121 under share.

A handler of 2ms takes at most 1,000 reads in 2s, under any bound; the flood must wait.

` + footer + `
MB/s read: millions of bytes a second that the handler was done with; TCP makes the flood wait.
`
	cfg := testConfig()
	cfg.net = overTCP
	var b strings.Builder
	if err := printTable(&b, cfg, testStreamRows()); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestJSONTCP: what was read is there, also where it is nothing.
func TestJSONTCP(t *testing.T) {
	t.Parallel()
	nothing := 0.0
	rows := []row{testStreamRows()[1], {Net: overTCP, ReadSpeed: &nothing}}
	var b strings.Builder
	if err := printJSON(&b, testConfig(), rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"net": "tcp"`, `"delivered": 46912000`, `"read_mb_s": 23.456`, `"read_mb_s": 0`} {
		if !strings.Contains(b.String(), want+"\n") && !strings.Contains(b.String(), want+",\n") {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

func TestNoRows(t *testing.T) {
	t.Parallel()
	var table, doc strings.Builder
	if err := printTable(&table, testConfig(), nil); err != nil || table.String() != "" {
		t.Errorf("table %q, error %v", table.String(), err)
	}
	if err := printJSON(&doc, testConfig(), nil); err != nil || doc.String() != "{\n  \"runs\": []\n}\n" {
		t.Errorf("JSON %q, error %v", doc.String(), err)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	const want = `{
  "runs": [
    {
      "net": "udp",
      "bound": "share",
      "ticks_due": 100,
      "ticks_fired": 100,
      "lag_ms": {
        "p50": 0.9,
        "p99": 2,
        "max": 2.123
      },
      "sent": 1000000,
      "delivered": 980,
      "kernel_dropped": 998743
    },
    {
      "net": "udp",
      "bound": "share",
      "ticks_due": 0,
      "ticks_fired": 0,
      "lag_ms": {
        "p50": 0,
        "p99": 0,
        "max": 0
      },
      "sent": 0,
      "delivered": 0,
      "kernel_dropped": 0,
      "interrupted": true
    }
  ]
}
`
	var b strings.Builder
	if err := printJSON(&b, testConfig(), []row{testRows()[2], {Net: overUDP, Bound: "share", Interrupted: true}}); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.rate, cfg.work, cfg.handler, cfg.duration = 20_000, 500*time.Microsecond, 0, 10*time.Minute
	const want = "Sockets and timers of a loop share one goroutine: can a flooded socket starve a timer?\n\n" +
		"A flood (20,000 datagrams a second) of a socket whose handler takes 0s a datagram,\n" +
		"beside a timer of 20ms and 500µs of other work a turn; 10m for each bound."
	if got := title(cfg); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	make := func(bound string, fired int, late time.Duration, delivered uint64) row {
		return row{Bound: bound, TicksDue: 100, TicksFired: fired, Lag: lags{Max: millis(late)}, Delivered: delivered}
	}
	cut := make("share", 9, 2*time.Second, 10)
	cut.Interrupted = true
	for _, c := range []struct {
		name string
		rows []row
		want string
	}{
		{
			"one that kept time", []row{make("share", 95, 40*ms, 10)},
			"Nothing was starved: under share the timer kept time (95 of 100 ticks, up to 40.0 ms late).",
		},
		{
			"one that was held up", []row{make("share", 94, 40*ms, 10)},
			"Under share the timer was held up (94 of 100 ticks, up to 40.0 ms late).",
		},
		{
			"none was harmed", []row{make("unbounded", 100, 1*ms, 10), make("count:8", 99, 21*ms, 10)},
			"Nothing was starved: unbounded, the timer kept time (100 of 100 ticks, up to 1.00 ms late); " +
				"with count:8 it kept time (99 of 100, up to 21.0 ms late).",
		},
		{
			"share may be the one", []row{make("share", 9, 2*time.Second, 10), make("unbounded", 10, 999*ms, 14)},
			"Under share the timer was starved (9 of 100 ticks, up to 2.00 s late); " +
				"unbounded, it was held up (10 of 100, up to 999 ms late).",
		},
		{
			"one delivered less", []row{make("count:32", 100, 1*ms, 1000), make("unbounded", 100, 1*ms, 1500)},
			"Nothing was starved: with count:32 the timer kept time (100 of 100 ticks, up to 1.00 ms late); " +
				"unbounded, it kept time (100 of 100, up to 1.00 ms late); " +
				"the fewest datagrams were delivered with count:32: 1,000, against 1,500 unbounded.",
		},
		{
			"less, but cut short", []row{make("unbounded", 100, 1*ms, 1500), cut},
			"Unbounded, the timer kept time (100 of 100 ticks, up to 1.00 ms late); under share it was starved " +
				"(9 of 100, up to 2.00 s late).",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := strings.ReplaceAll(sentence(c.rows), unbroken, " "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestMillis(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                           "0 µs",
		85_400:                      "85 µs",
		999_499:                     "999 µs",
		999_500:                     "1.00 ms",
		9_994_999:                   "9.99 ms",
		9_995_000:                   "10.0 ms",
		99_949_999:                  "99.9 ms",
		99_950_000:                  "100 ms",
		999_499_999:                 "999 ms",
		999_500_000:                 "1.00 s",
		1990 * ms:                   "1.99 s",
		10 * time.Minute:            "600 s",
		12_345 * ms:                 "12.3 s",
		2_123_456 * time.Nanosecond: "2.12 ms",
	} {
		if got := millis(d).String(); got != want {
			t.Errorf("%d ns: got %q, want %q", d, got, want)
		}
	}
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1_234_567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
