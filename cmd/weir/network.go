package main

import "fmt"

// network is what a flood goes over. The zero network is udp.
type network string

const (
	overUDP network = "udp"
	overTCP network = "tcp"
)

// checkRate refuses a rate where there is none.
func (n network) checkRate(rate int) error {
	if n == overTCP && rate > 0 {
		return wrong("--rate \"%d\": with --net tcp only 0 is allowed", rate)
	}
	return nil
}

// amount is what a handler was given: datagrams, or bytes.
func (n network) amount(delivered uint64) string {
	if n == overTCP {
		return threeDigits(float64(delivered)/megabyte) + " MB read"
	}
	return grouped(delivered) + " delivered"
}

const megabyte = 1e6

// networkValue is a flag's network.
type networkValue struct{ n *network }

func (v networkValue) String() string { return string(*v.n) }

func (v networkValue) Type() string { return "network" }

func (v networkValue) Set(s string) error {
	switch n := network(s); n {
	case overUDP, overTCP:
		*v.n = n
		return nil
	default:
		return fmt.Errorf("udp and tcp are allowed")
	}
}
