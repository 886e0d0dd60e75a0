package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// row is what one run measured. Its JSON is documented: fields are added, not changed.
type row struct {
	Net           network  `json:"net"`
	Bound         string   `json:"bound"`
	TicksDue      int      `json:"ticks_due"`
	TicksFired    int      `json:"ticks_fired"`
	Lag           lags     `json:"lag_ms"`
	Sent          uint64   `json:"sent"`      // datagrams, over TCP bytes
	Delivered     uint64   `json:"delivered"` // likewise
	KernelDropped uint64   `json:"kernel_dropped"`
	ReadSpeed     *float64 `json:"read_mb_s,omitempty"`   // over TCP
	Interrupted   bool     `json:"interrupted,omitempty"` // the run was cut short
}

// left is the number of datagrams that neither the handler nor the kernel had got rid of at the end.
func (r row) left() uint64 {
	if gone := r.Delivered + r.KernelDropped; gone < r.Sent {
		return r.Sent - gone
	}
	return 0
}

// millis is a duration that is milliseconds in JSON, to the microsecond.
type millis time.Duration

func (m millis) MarshalJSON() ([]byte, error) {
	ms := float64(time.Duration(m).Round(time.Microsecond)) / float64(time.Millisecond)
	return strconv.AppendFloat(nil, ms, 'f', -1, 64), nil
}

// String has three digits, as many as the eye compares: 85 µs, 2.13 ms, 1.99 s.
func (m millis) String() string {
	d := time.Duration(m)
	switch {
	case d < 999_500*time.Nanosecond:
		return digits(d, time.Microsecond) + " µs"
	case d < 999_500*time.Microsecond:
		return digits(d, time.Millisecond) + " ms"
	default:
		return digits(d, time.Second) + " s"
	}
}

func digits(d, unit time.Duration) string {
	n := float64(d) / float64(unit)
	if unit == time.Microsecond {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return threeDigits(n)
}

// threeDigits has more of them above 999.
func threeDigits(n float64) string {
	decimals := 2
	switch {
	case n >= 99.95:
		decimals = 0
	case n >= 9.995:
		decimals = 1
	}
	return strconv.FormatFloat(n, 'f', decimals, 64)
}

func printJSON(w io.Writer, _ demoConfig, rows []row) error {
	if rows == nil {
		rows = []row{} // an empty list, not null
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Runs []row `json:"runs"`
	}{rows})
}

const footer = `bound: share is the default of weir; a count, 32 for example, is what other event loops have.
lag: how late the timer was for a tick. A late timer fires once for all ticks it owes, and each counts
     as late as the first; ticks owed at the end count until then.`

// What the last columns are, by network.
const (
	footerUDP = ` dropped: by the kernel, as the
     socket's buffer was full. left: in that buffer at the end.`
	footerTCP = `
MB/s read: millions of bytes a second that the handler was done with; TCP makes the flood wait.`
)

// columns are the last ones of the table, by network.
func (n network) columns() []string {
	if n == overTCP {
		return []string{"MB/s read"}
	}
	return []string{"sent", "delivered", "dropped", "left"}
}

func (r row) cells() []string {
	if r.ReadSpeed != nil {
		return []string{threeDigits(*r.ReadSpeed)}
	}
	return []string{grouped(r.Sent), grouped(r.Delivered), grouped(r.KernelDropped), grouped(r.left())}
}

// printTable prints nothing if there are no rows.
func printTable(w io.Writer, cfg demoConfig, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	width := len("bound")
	for _, r := range rows {
		width = max(width, len(r.name()))
	}
	line := func(name string, cells ...string) { // the cells are aligned to the right, the name is not
		fmt.Fprintf(table, "%-*s\t%s\t\n", width, name, strings.Join(cells, "\t"))
	}
	line("bound", append([]string{"ticks due", "fired", "lag p50", "p99", "max"}, cfg.net.columns()...)...)
	for _, r := range rows {
		line(r.name(), append([]string{strconv.Itoa(r.TicksDue), strconv.Itoa(r.TicksFired),
			r.Lag.P50.String(), r.Lag.P99.String(), r.Lag.Max.String()}, r.cells()...)...)
	}
	foot := footer + footerUDP
	if cfg.net == overTCP {
		foot = footer + footerTCP
	}
	_ = table.Flush() // a Builder takes everything
	_, err := fmt.Fprintf(w, "%s\n\n%s\n%s\n\n%s%s\n", title(cfg), b.String(), wrapped(sentence(rows)), capacity(cfg), foot)
	return err
}

// title says what the runs had in common.
func title(cfg demoConfig) string {
	rate := "as fast as it goes"
	if cfg.rate > 0 {
		rate = grouped(uint64(cfg.rate)) + " datagrams a second"
	}
	work := ""
	if cfg.work > 0 {
		work = fmt.Sprintf(" and %v of other work a turn", cfg.work)
	}
	what, each := "socket", "datagram"
	if cfg.net == overTCP {
		what, each = "TCP connection", "read"
	}
	const text = "Sockets and timers of a loop share one goroutine: can a flooded socket starve a timer?\n\n" +
		"A flood (%s) of a %s whose handler takes %v a %s,\nbeside a timer of %v%s; %s for each bound."
	return fmt.Sprintf(text, rate, what, cfg.handler, each, period, work, shortDuration(cfg.duration))
}

// capacity says what the handler could take, so that nobody wonders at what was dropped, or how little was read.
func capacity(cfg demoConfig) string {
	if cfg.handler == 0 {
		return ""
	}
	most := grouped(uint64(cfg.duration / cfg.handler))
	limit, rest := most+" datagrams", "the kernel must drop the rest"
	if cfg.net == overTCP {
		limit, rest = most+" reads", "the flood must wait"
	}
	return fmt.Sprintf("A handler of %v takes at most %s in %s, under any bound; %s.\n\n",
		cfg.handler, limit, shortDuration(cfg.duration), rest)
}

// unbroken is a space between a number and its unit, where no line ends.
const unbroken = "\u00a0"

// wrapped breaks a text into lines of at most 100 columns.
func wrapped(text string) string { return wrapTo(text, 100) }

// wrapTo breaks a text into lines of at most so many columns.
func wrapTo(text string, columns int) string {
	var b strings.Builder
	used := 0
	for word := range strings.SplitSeq(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
		case used+1+n > columns:
			b.WriteByte('\n')
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return strings.ReplaceAll(b.String(), unbroken, " ")
}

func (r row) name() string {
	if r.Interrupted {
		return r.Bound + " (cut short)"
	}
	return r.Bound
}

// grouped is a number with a comma between its thousands.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// sentence says what was seen.
func sentence(rows []row) string {
	harmed := false
	clauses := make([]string, 0, len(rows)+1)
	for i, r := range rows {
		harmed = harmed || r.fate() != onTime
		clauses = append(clauses, r.clause(i == 0))
	}
	said := strings.Join(append(clauses, difference(rows)...), "; ") + "."
	if !harmed {
		return "Nothing was starved: " + said
	}
	return strings.ToUpper(said[:1]) + said[1:]
}

// difference is a clause on what was delivered, if one bound let clearly less through than another.
func difference(rows []row) []string {
	least, most := rows[0], rows[0]
	for _, r := range rows {
		if r.throughput() < least.throughput() {
			least = r
		}
		if r.throughput() > most.throughput() {
			most = r
		}
	}
	cut := slices.ContainsFunc(rows, func(r row) bool { return r.Interrupted })
	if cut || most.throughput()*2 < least.throughput()*3 || most.throughput() == least.throughput() {
		return nil
	}
	if least.ReadSpeed != nil {
		return []string{fmt.Sprintf("the least was read %s: %s%sMB/s, against %s %s", strings.TrimSuffix(least.under(), ","),
			threeDigits(least.throughput()), unbroken, threeDigits(most.throughput()), strings.TrimSuffix(most.under(), ","))}
	}
	return []string{fmt.Sprintf("the fewest datagrams were delivered %s: %s, against %s %s", strings.TrimSuffix(least.under(), ","),
		grouped(least.Delivered), grouped(most.Delivered), strings.TrimSuffix(most.under(), ","))}
}

// throughput is what the rows of a network are compared by.
func (r row) throughput() float64 {
	if r.ReadSpeed != nil {
		return *r.ReadSpeed
	}
	return float64(r.Delivered)
}

// fate is what became of the timer, as the sentence says it.
type fate string

const (
	onTime  fate = "kept time"   // 95 % of the ticks or more fired
	held    fate = "was held up" // between
	starved fate = "was starved" // fewer than 10 %
)

func (r row) fate() fate {
	switch {
	case r.TicksFired*20 >= r.TicksDue*19:
		return onTime
	case r.TicksFired*10 >= r.TicksDue:
		return held
	default:
		return starved
	}
}

// clause is "under share it kept time (100 of 100 ticks, up to 2.1 ms late)".
func (r row) clause(first bool) string {
	timer, ticks := "it", ""
	if first {
		timer, ticks = "the timer", " ticks"
	}
	late := strings.ReplaceAll(r.Lag.Max.String(), " ", unbroken)
	return fmt.Sprintf("%s %s %s (%d of %d%s, up to %s late)", r.under(), timer, r.fate(), r.TicksFired, r.TicksDue, ticks, late)
}

// under is the bound with its preposition.
func (r row) under() string {
	switch {
	case r.Bound == "unbounded":
		return "unbounded,"
	case strings.HasPrefix(r.Bound, "count:"):
		return "with " + r.Bound
	default:
		return "under " + r.Bound
	}
}
