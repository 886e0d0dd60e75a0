//go:build unix

package main

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"os"
	"sync/atomic"

	"github.com/weirnet/weir/lab/internal/meter"
)

func main() {
	kind := flag.String("kind", "garbage", "garbage or initials")
	rate := flag.Int("rate", 1000, "datagrams a second")
	ports := flag.Int("ports", 64, "ports to send from")
	count := flag.Int("count", 4096, "how many datagrams are made; then they come again")
	flag.Parse()
	var packets [][]byte
	var err error
	switch *kind {
	case "garbage":
		packets = garbage(*count)
	case "initials":
		packets, err = initials(*count)
	default:
		err = fmt.Errorf("-kind %s: not garbage or initials", *kind)
	}
	if err != nil {
		meter.Fail(err)
	}
	f, err := newFlood(packets, *rate, *ports)
	if err != nil {
		meter.Fail(err)
	}
	go f.run()
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); fmt.Println(f.sent.Load()) {
		if err := aim(&f.to, lines.Text()); err != nil {
			meter.Fail(err)
		}
	}
}

func aim(at *atomic.Pointer[net.UDPAddr], text string) error {
	if text == "" {
		at.Store(nil)
		return nil
	}
	to, err := net.ResolveUDPAddr("udp4", text)
	at.Store(to)
	return err
}
