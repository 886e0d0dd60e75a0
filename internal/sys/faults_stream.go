package sys

import (
	"net/netip"
	"os"

	"github.com/weirnet/weir/fault"
)

func (f *faulty) Unblock(fd int) error {
	if err := f.hit(fault.Unblock, fd); err != nil {
		return err
	}
	return f.k.Unblock(fd)
}

func (f *faulty) Listen(fd, backlog int) error {
	if err := f.hit(fault.Listen, fd); err != nil {
		return err
	}
	return f.k.Listen(fd, backlog)
}

// Accept that is not made leaves the connection in the queue, also where the kernel would have taken it out.
func (f *faulty) Accept(fd int) (int, netip.AddrPort, error) {
	if err := f.hit(fault.Accept, fd); err != nil {
		return -1, netip.AddrPort{}, err
	}
	return f.k.Accept(fd)
}

func (f *faulty) Read(fd int, b []byte) (int, error) {
	a := AskFaults(f.in, fault.Read, fd)
	if a.Errno != 0 {
		return 0, a.Errno
	}
	return f.k.Read(fd, b[:shorten(len(b), a)])
}

func (f *faulty) Write(fd int, v *Vector, more bool) (int, error) {
	a := AskFaults(f.in, fault.Write, fd)
	if a.Errno != 0 {
		return 0, a.Errno
	}
	if a.Short > 0 {
		c := v.cut(a.Short)
		defer v.restore(c)
	}
	return f.k.Write(fd, v, more)
}

func (f *faulty) SendFile(fd int, file *os.File, offset int64, n int, more bool) (int, error) {
	a := AskFaults(f.in, fault.SendFile, fd)
	if a.Errno != 0 {
		return 0, a.Errno
	}
	return f.k.SendFile(fd, file, offset, shorten(n, a), more)
}

func (f *faulty) CloseWrite(fd int) error {
	if err := f.hit(fault.CloseWrite, fd); err != nil {
		return err
	}
	return f.k.CloseWrite(fd)
}

func (f *faulty) Info(fd int) (TCPInfo, error) {
	if err := f.hit(fault.Info, fd); err != nil {
		return TCPInfo{}, err
	}
	return f.k.Info(fd)
}

// cutVector is what a Vector was before it was cut.
type cutVector struct {
	bufs [][]byte
	last int // the buffer that was cut
	buf  []byte
}

// cut leaves the first n bytes of the vector, n > 0, until it is restored.
func (v *Vector) cut(n int) cutVector {
	c := cutVector{bufs: v.Bufs}
	for i, b := range v.Bufs {
		c.last, c.buf = i, b
		if n <= len(b) {
			v.Bufs[i] = b[:n]
			v.Bufs = v.Bufs[:i+1]
			break
		}
		n -= len(b)
	}
	return c
}

func (v *Vector) restore(c cutVector) {
	v.Bufs = c.bufs
	if len(v.Bufs) > 0 {
		v.Bufs[c.last] = c.buf
	}
}
