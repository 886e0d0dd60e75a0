package weir

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bound is how much a socket may do at a time while others wait. The zero Bound stands for the default of
// where it is used: the loop's for a socket, Share for a loop.
type Bound struct {
	kind  boundKind
	count int
}

type boundKind uint8

const (
	boundDefault boundKind = iota
	boundShare
	boundCount
	boundNone
)

// Share bounds a socket by measured time: it is served while it has credit, and what its callbacks take
// is charged. Sources that are busy at the same time get equal time, whatever one datagram costs.
func Share() Bound { return Bound{kind: boundShare} }

// Count bounds a socket to n datagrams each turn, exactly. It is what other event loops do (libuv: 32),
// for comparison and for programs that count on it: it stops starvation by cheap handlers only, and is a
// ceiling on what a socket can receive. n must be above zero.
func Count(n int) Bound { return Bound{kind: boundCount, count: n} }

// Unbounded reads a socket until it is empty. A peer that sends faster than the handler works then owns
// the loop. It is there for comparison.
func Unbounded() Bound { return Bound{kind: boundNone} }

// ParseBound reads "share", "unbounded", or a count such as "count:32".
func ParseBound(s string) (Bound, error) {
	switch s {
	case "share":
		return Share(), nil
	case "unbounded":
		return Unbounded(), nil
	}
	if digits, ok := strings.CutPrefix(s, "count:"); ok {
		if n, err := strconv.Atoi(digits); err == nil && n > 0 {
			return Count(n), nil
		}
	}
	return Bound{}, fmt.Errorf("weir: bound %q is none of share, unbounded, count:N with N above 0", s)
}

// String is the bound's name, as ParseBound reads it; "default" for the zero Bound.
func (b Bound) String() string {
	switch b.kind {
	case boundShare:
		return "share"
	case boundCount:
		return "count:" + strconv.Itoa(b.count)
	case boundNone:
		return "unbounded"
	default:
		return "default"
	}
}

// or is b, or the given default.
func (b Bound) or(def Bound) Bound {
	if b.kind == boundDefault {
		return def
	}
	return b
}

func (b Bound) check() error {
	if b.kind == boundCount && b.count < 1 {
		return fmt.Errorf("weir: Count(%d): the count must be above zero", b.count)
	}
	return nil
}

// exempt tells that the ring's credit does not apply.
func (b Bound) exempt() bool { return b.kind != boundShare }

// most is how many datagrams one visit may deliver.
func (b Bound) most() int {
	if b.kind == boundCount {
		return b.count
	}
	return math.MaxInt
}
