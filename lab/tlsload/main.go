//go:build unix

package main

import (
	"bufio"
	"crypto/tls"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/weirnet/weir/lab/internal/meter"
)

// load is what the command line says.
type load struct {
	addr   string
	conns  int
	bytes  int // math.MaxInt: no end
	size   int
	period time.Duration
	cfg    *tls.Config
}

// job gets the connections to work, and returns when they are ready what answers a line.
type job func(l load) (answer func() []int64, err error)

func main() {
	jobs := map[string]job{"handshakes": handshakes, "hold": hold, "down": down, "up": up, "echo": echo, "storm": storm}
	// Who measures a server does not check its certificate: that would be the load's work, not the server's.
	l := load{cfg: &tls.Config{InsecureSkipVerify: true}}
	flag.StringVar(&l.addr, "addr", "", "where the server listens")
	flag.IntVar(&l.conns, "conns", 1, "number of connections")
	flag.IntVar(&l.bytes, "bytes", 0, "bytes down or up on each; 0: no end")
	flag.IntVar(&l.size, "size", 16<<10, "bytes of a write")
	flag.DurationVar(&l.period, "period", 10*time.Millisecond, "between the messages of an echo")
	do := flag.String("do", "", "handshakes, hold, down, up, echo or storm")
	resume := flag.Bool("resume", false, "resume sessions")
	flag.Parse()
	if *resume {
		l.cfg.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	if l.bytes == 0 {
		l.bytes = math.MaxInt
	}
	start, ok := jobs[*do]
	if !ok {
		meter.Fail(fmt.Errorf("-do %q: there is no such load", *do))
	}
	answer, err := start(l)
	if err != nil {
		meter.Fail(err)
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(strings.Trim(fmt.Sprint(answer()), "[]"))
	}
	os.Exit(0)
}
