package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirnet/weir"
)

// durationValue is a flag's duration from least to most.
type durationValue struct {
	d           *time.Duration
	least, most time.Duration
}

func (v durationValue) String() string { return shortDuration(*v.d) }

func (v durationValue) Type() string { return "duration" }

func (v durationValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < v.least || d > v.most {
		return fmt.Errorf("a duration from %s to %s is allowed", shortDuration(v.least), shortDuration(v.most))
	}
	*v.d = d
	return nil
}

// shortDuration is 10m where Duration.String has 10m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// rateValue is a flag's datagrams per second, up to maxRate.
type rateValue struct{ rate *int }

const maxRate = 10_000_000

func (v rateValue) String() string { return strconv.Itoa(*v.rate) }

func (v rateValue) Type() string { return "int" }

func (v rateValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxRate {
		return fmt.Errorf("a whole number from 0 to %d is allowed", maxRate)
	}
	*v.rate = n
	return nil
}

// boundsValue is a flag's list of bounds. The first use replaces the default, later ones add to it.
type boundsValue struct {
	bounds *[]weir.Bound
	given  *bool
}

func (v boundsValue) String() string {
	names := make([]string, len(*v.bounds))
	for i, b := range *v.bounds {
		names[i] = b.String()
	}
	return strings.Join(names, ",")
}

func (v boundsValue) Type() string { return "bounds" }

func (v boundsValue) Set(s string) error {
	var more []weir.Bound
	for word := range strings.SplitSeq(s, ",") {
		b, err := weir.ParseBound(strings.TrimSpace(word))
		if err != nil {
			return fmt.Errorf("share, unbounded and count:N with N above 0 are allowed")
		}
		more = append(more, b)
	}
	if !*v.given {
		*v.given, *v.bounds = true, nil
	}
	*v.bounds = append(*v.bounds, more...)
	return nil
}
