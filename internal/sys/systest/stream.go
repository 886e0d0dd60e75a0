package systest

import (
	"bytes"
	"strings"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var streamCases = []assertion{
	{"stream: what is written in pieces is read in others", func(r *rig) {
		const text = "a stream has no edges of its own"
		r.eachStream(func(a, b int) {
			for _, written := range []int{1, 2, 3, 7, 16, len(text)} {
				for _, read := range []int{1, 3, 8, len(text), 100} {
					for rest := text; rest != ""; rest = rest[min(written, len(rest)):] {
						r.write(a, rest[:min(written, len(rest))])
					}
					var got strings.Builder
					for got.Len() < len(text) {
						got.WriteString(r.read(b, min(read, len(text)-got.Len())))
					}
					r.equal(got.String(), text)
					r.readErr(b, syscall.EAGAIN)
				}
			}
		})
	}},
	{"stream: a Read brings what is there, and waits for no more", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.readErr(b, syscall.EAGAIN)
			r.write(a, "12345")
			r.await(b, poll.Readable)
			s, err := r.tryRead(b, 100)
			r.must(err)
			r.equal(s, "12345")
			r.readErr(b, syscall.EAGAIN)
		})
	}},
	{"stream: buffers of a vector go out in their order, and stay as they are", func(r *rig) {
		r.eachStream(func(a, b int) {
			for _, count := range []int{1, 2, 3, 17, 1024} {
				var bufs []string
				for i := range count {
					bufs = append(bufs, strings.Repeat(string(rune('a'+i%26)), 1+i%5))
				}
				v, all := vector(bufs...), strings.Join(bufs, "")
				for range 2 { // the same vector again
					n, err := r.Kernel.Write(a, v, false)
					r.must(err)
					r.equal(n, len(all))
					r.equal(string(bytes.Join(v.Bufs, nil)), all)
					r.equal(r.read(b, len(all)), all)
				}
			}
		})
	}},
	{"stream: a vector with room takes fewer buffers", func(r *rig) {
		r.eachStream(func(a, b int) {
			v := sys.NewVector(8)
			for _, bufs := range [][]string{{"one", "two", "three"}, {"four"}, {"five", "six"}} {
				v.Bufs = vector(bufs...).Bufs
				_, err := r.Kernel.Write(a, v, false)
				r.must(err)
				all := strings.Join(bufs, "")
				r.equal(r.read(b, len(all)), all)
				r.readErr(b, syscall.EAGAIN)
			}
		})
	}},
	{"stream: what is written with more goes out with what follows", func(r *rig) {
		r.eachStream(func(a, b int) {
			for _, text := range []string{"first, ", "second, "} {
				n, err := r.Kernel.Write(a, vector(text), true)
				r.must(err)
				r.equal(n, len(text))
			}
			r.write(a, "last")
			r.equal(r.read(b, 19), "first, second, last")
		})
	}},
	{"stream: the directions do not mix", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.write(a, "to b")
			r.write(b, "to a")
			r.equal(r.read(a, 4), "to a")
			r.equal(r.read(b, 4), "to b")
			r.readErr(a, syscall.EAGAIN)
			r.readErr(b, syscall.EAGAIN)
		})
	}},
	{"stream: connections do not mix", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		a, c := r.dial(r.local(l)), r.dial(r.local(l))
		b, d := r.accept(l), r.accept(l)
		r.write(c, "second")
		r.write(a, "first")
		r.equal(r.read(b, 5), "first")
		r.equal(r.read(d, 6), "second")
	}},
	{"stream: works between IPv6 addresses", func(r *rig) {
		a, b := r.pairAt("[::1]:0")
		r.write(a, "x")
		r.write(b, "y")
		r.equal(r.read(b, 1), "x")
		r.equal(r.read(a, 1), "y")
	}},
	{"stream: many at once do not mix", func(r *rig) {
		l := r.listener("127.0.0.1:0", 64)
		var ends [][2]int
		for range 32 {
			a := r.dial(r.local(l))
			ends = append(ends, [2]int{a, r.accept(l)})
		}
		for i, e := range ends {
			r.write(e[0], string(rune('A'+i)))
		}
		for i, e := range ends {
			r.equal(r.read(e[1], 1), string(rune('A'+i)))
		}
	}},
	{"stream: what does not fit is told, and there is room again once the peer reads", func(r *rig) {
		r.eachStream(func(a, b int) {
			sent := r.fill(a)
			if sent == 0 {
				r.Fatal("there is no room at all")
			}
			r.becomes(a, 0)
			r.writeErr(a, syscall.EAGAIN)
			r.equal(r.drain(b), sent)
			r.becomes(a, poll.Writable)
			r.write(a, "x")
			r.equal(r.read(b, 1), "x")
		})
	}},
	{"stream: a full one is readable all the same, and its peer writable", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.fill(a)
			r.becomes(b, poll.Readable|poll.Writable)
			r.write(b, "back")
			r.becomes(a, poll.Readable)
			r.equal(r.read(a, 4), "back")
			r.becomes(a, 0)
		})
	}},
	{"stream: a smaller buffer has room for less", func(r *rig) {
		r.eachStream(func(a, b int) {
			c, d := r.tcpPair()
			if r.describe(a).Kind == sys.UnixStream {
				c, d = r.unixPair()
			}
			for _, fd := range []int{c, d} {
				r.setOption(fd, sys.SendBuffer, 8<<10)
				r.setOption(fd, sys.RecvBuffer, 8<<10)
			}
			if large, small := r.fill(a), r.fill(c); small >= large {
				r.Errorf("room for %d bytes, and with small buffers for %d", large, small)
			}
		})
	}},
	{"stream: order is kept over many short writes", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.pump(a, b, 1, 1<<20+12345)
			r.pump(b, a, 1, 1<<20+12345)
		})
	}},
	{"stream: order is kept over many short writes of vectors", func(r *rig) {
		r.eachStream(func(a, b int) { r.pump(a, b, 37, 4<<20+777) })
	}},
	{"stream: a duplicate is the same end, and closing one leaves the other", func(r *rig) {
		r.eachStream(func(a, b int) {
			dup := r.duplicate(a)
			r.write(dup, "1")
			r.write(a, "2")
			r.equal(r.read(b, 2), "12")
			r.write(b, "xy")
			r.equal(r.read(a, 1), "x")
			r.equal(r.read(dup, 1), "y")
			r.must(r.Kernel.Close(a))
			r.becomes(b, poll.Writable)
			r.write(dup, "3")
			r.equal(r.read(b, 1), "3")
			r.must(r.Kernel.Close(dup))
			r.readEnd(b)
		})
	}},
}

// pattern is a stream of bytes in which no two places nearby look alike.
func pattern(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + i>>16*29)
	}
	return b
}

// fill writes until there is no room, and stays so, and tells how many bytes there was room for.
func (r *rig) fill(fd int) (sent int) {
	r.Helper()
	chunk := strings.Repeat("x", 64<<10)
	r.eventually("there is no room", func() bool {
		before := sent
		for {
			n, err := r.tryWrite(fd, chunk)
			if err != nil {
				r.want(err, syscall.EAGAIN)
				return sent == before && sent > 0
			}
			sent += n
		}
	})
	return sent
}

// drain reads until nothing comes any more, and tells how many bytes came.
func (r *rig) drain(fd int) (got int) {
	r.Helper()
	r.eventually("nothing comes", func() bool {
		before := got
		for {
			s, err := r.tryRead(fd, 256<<10)
			if err != nil {
				r.want(err, syscall.EAGAIN)
				return got == before
			}
			if s == "" {
				return true
			}
			got += len(s)
		}
	})
	return got
}

// pump moves bytes from one end to the other, with vectors of that many buffers, as far as there is room each time.
func (r *rig) pump(from, to, bufs, size int) {
	r.Helper()
	data := pattern(size)
	sent, got := 0, make([]byte, 0, size)
	b := make([]byte, 100_000)
	r.eventually("all comes", func() bool {
		for sent < size {
			n, err := r.Kernel.Write(from, cut(data[sent:], bufs, 30_011), false)
			if err == syscall.EAGAIN {
				break
			}
			r.must(err)
			sent += n
		}
		for len(got) < sent {
			n, err := r.Kernel.Read(to, b)
			if err == syscall.EAGAIN {
				break
			}
			r.must(err)
			got = append(got, b[:n]...)
		}
		return len(got) == size
	})
	if !bytes.Equal(got, data) {
		r.Error("the bytes are not those that were written")
	}
}

// cut makes a vector of what is in front of data: at most that many buffers of at most that size.
func cut(data []byte, bufs, size int) *sys.Vector {
	v := sys.NewVector(bufs)
	for range bufs {
		if n := min(size, len(data)); n > 0 {
			v.Bufs = append(v.Bufs, data[:n])
			data = data[n:]
		}
	}
	return v
}
