package sys

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/weirnet/weir/fault"
)

// WithFaults is k with the faults that in decides on; k itself where in is nil. A fault hits a call as a whole:
// one with an errno is not made, Close aside, and a batch is not hit in its middle.
func WithFaults(k Kernel, in *fault.Injector) Kernel {
	if in == nil {
		return k
	}
	return &faulty{k: k, in: in}
}

// AskFaults asks in what to do with a call on a Kernel or a Poller, and waits where there is a delay. An EINTR
// has no effect: the call would be made again.
func AskFaults(in *fault.Injector, call fault.Call, fd int) fault.Action {
	a := in.Check(call, fd).Action
	if a.Delay > 0 {
		time.Sleep(a.Delay)
	}
	if a.Errno == syscall.EINTR {
		a.Errno = 0
	}
	return a
}

// faulty has every call of the contract written out, so that one that is new to it does not slip through.
type faulty struct {
	k  Kernel
	in *fault.Injector
}

var _ Kernel = (*faulty)(nil)

// hit answers the errno of a call that has nothing else to lose.
func (f *faulty) hit(call fault.Call, fd int) error {
	if a := AskFaults(f.in, call, fd); a.Errno != 0 {
		return a.Errno
	}
	return nil
}

func (f *faulty) Socket(fam Family, k Kind) (int, error) {
	if err := f.hit(fault.Socket, -1); err != nil {
		return -1, err
	}
	return f.k.Socket(fam, k)
}

func (f *faulty) Bind(fd int, addr netip.AddrPort) error {
	if err := f.hit(fault.Bind, fd); err != nil {
		return err
	}
	return f.k.Bind(fd, addr)
}

func (f *faulty) Connect(fd int, addr netip.AddrPort) error {
	if err := f.hit(fault.Connect, fd); err != nil {
		return err
	}
	return f.k.Connect(fd, addr)
}

func (f *faulty) LocalAddr(fd int) (netip.AddrPort, error) {
	if err := f.hit(fault.LocalAddr, fd); err != nil {
		return netip.AddrPort{}, err
	}
	return f.k.LocalAddr(fd)
}

func (f *faulty) RemoteAddr(fd int) (netip.AddrPort, error) {
	if err := f.hit(fault.RemoteAddr, fd); err != nil {
		return netip.AddrPort{}, err
	}
	return f.k.RemoteAddr(fd)
}

func (f *faulty) Describe(fd int) (Description, error) {
	if err := f.hit(fault.Describe, fd); err != nil {
		return Description{}, err
	}
	return f.k.Describe(fd)
}

func (f *faulty) Duplicate(fd int) (int, error) {
	if err := f.hit(fault.Duplicate, fd); err != nil {
		return -1, err
	}
	return f.k.Duplicate(fd)
}

// Close is made whatever it answers: close(2) frees the descriptor early.
func (f *faulty) Close(fd int) error {
	fails := f.hit(fault.Close, fd)
	if err := f.k.Close(fd); err != nil {
		return err
	}
	return fails
}

func (f *faulty) Recv(fd int, b *RecvBatch, n int) (int, error) {
	a := AskFaults(f.in, fault.Recv, fd)
	if a.Errno != 0 {
		return 0, a.Errno
	}
	got, err := f.k.Recv(fd, b, shorten(n, a))
	if a.Drop && err == nil {
		f.drop(b.Msgs[:got])
		return 0, syscall.EAGAIN
	}
	return got, err
}

func (f *faulty) Send(fd int, b *SendBatch, from, to int) (int, error) {
	a := AskFaults(f.in, fault.Send, fd)
	if a.Errno != 0 {
		return 0, a.Errno
	}
	if a.Drop {
		f.drop(b.Msgs[from:to])
		return to - from, nil
	}
	return f.k.Send(fd, b, from, from+shorten(to-from, a))
}

func (f *faulty) RecvErrors(fd int, b *ReportBatch, n int) (int, error) {
	a := AskFaults(f.in, fault.RecvErrors, fd)
	if a.Errno != 0 {
		return 0, a.Errno
	}
	got, err := f.k.RecvErrors(fd, b, shorten(n, a))
	if a.Drop && err == nil {
		return 0, syscall.EAGAIN
	}
	return got, err
}

func (f *faulty) Unbatched() (recv, send error) { return f.k.Unbatched() }

func (f *faulty) SetOption(fd int, o Option, value int) error {
	if err := f.hit(fault.SetOption, fd); err != nil {
		return err
	}
	return f.k.SetOption(fd, o, value)
}

func (f *faulty) GetOption(fd int, o Option) (int, error) {
	if err := f.hit(fault.GetOption, fd); err != nil {
		return 0, err
	}
	return f.k.GetOption(fd, o)
}

func (f *faulty) MemInfo(fd int) (MemInfo, error) {
	if err := f.hit(fault.MemInfo, fd); err != nil {
		return MemInfo{}, err
	}
	return f.k.MemInfo(fd)
}

func (f *faulty) BindToDevice(fd int, name string) error {
	if err := f.hit(fault.BindToDevice, fd); err != nil {
		return err
	}
	return f.k.BindToDevice(fd, name)
}

func (f *faulty) Membership(fd int, m Membership, join bool) error {
	if err := f.hit(fault.Membership, fd); err != nil {
		return err
	}
	return f.k.Membership(fd, m, join)
}

// drop counts the datagrams of messages, joined ones included.
func (f *faulty) drop(msgs []Message) {
	n := 0
	for i := range msgs {
		n++
		if size := int(msgs[i].Control.Segment); size > 0 && len(msgs[i].Buf) > size {
			n += (len(msgs[i].Buf) - 1) / size
		}
	}
	f.in.AddDropped(n)
}

func shorten(n int, a fault.Action) int {
	if a.Short > 0 {
		return min(n, a.Short)
	}
	return n
}
