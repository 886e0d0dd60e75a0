package weirtls

import (
	"math/rand/v2"
	"testing"
	"time"
)

// cut is how a splitter goes about it: the size of the next piece of n bytes, and how long it waits behind that.
type cut func(n int) (size int, wait time.Duration)

func whole(n int) (int, time.Duration) { return n, 0 }

// byteByByte waits behind each eighth byte.
func byteByByte() cut {
	turn := 0
	return func(int) (size int, wait time.Duration) {
		if turn++; turn%8 == 0 {
			wait = time.Microsecond
		}
		return 1, wait
	}
}

// atRandom follows from a seed.
func atRandom(seed uint64) cut {
	r := rand.New(rand.NewPCG(seed, 0))
	return func(n int) (size int, wait time.Duration) {
		size = 1 + r.IntN(min(n, 1<<r.IntN(16)))
		if r.IntN(4) == 0 {
			wait = time.Duration(r.IntN(100)) * time.Microsecond
		}
		return size, wait
	}
}

// splitter cuts the stream in each direction.
type splitter struct {
	peer
	in, out cut
}

func (s *splitter) Write(b []byte) (n int, err error) {
	for n < len(b) {
		size, wait := s.out(len(b) - n)
		k, err := s.peer.Write(b[n : n+size])
		n += k
		if err != nil {
			return n, err
		}
		time.Sleep(wait)
	}
	return n, nil
}

func (s *splitter) Read(b []byte) (int, error) {
	if len(b) > 0 {
		size, wait := s.in(len(b))
		time.Sleep(wait)
		b = b[:size]
	}
	return s.peer.Read(b)
}

// cuts are the ways that tests go about it.
var cuts = []struct {
	name string
	how  func(seed uint64) cut
}{
	{"whole", func(uint64) cut { return whole }},
	{"at random", atRandom},
	{"byte by byte", func(uint64) cut { return byteByByte() }},
}

// joins tells that the place would join such pieces again, and it takes long.
func (p *place) joins(cuts string) bool { return p.peers == nil && cuts == "byte by byte" }

// skipCut leaves what is said already by others to a soak.
func (p *place) skipCut(t *testing.T, cuts string) {
	t.Helper()
	switch {
	case p.joins(cuts):
		t.Skip("a machine joins the bytes anyway")
	case !longOracles && cuts == "at random":
		t.Skip("make soak has it")
	}
}
