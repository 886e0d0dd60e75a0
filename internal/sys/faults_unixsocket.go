package sys

import (
	"syscall"

	"github.com/weirnet/weir/fault"
)

func (f *faulty) BindUnix(fd int, name string) error {
	if err := f.hit(fault.Bind, fd); err != nil {
		return err
	}
	return f.k.BindUnix(fd, name)
}

func (f *faulty) ConnectUnix(fd int, name string) error {
	if err := f.hit(fault.Connect, fd); err != nil {
		return err
	}
	return f.k.ConnectUnix(fd, name)
}

func (f *faulty) LocalUnix(fd int) (string, error) {
	if err := f.hit(fault.LocalAddr, fd); err != nil {
		return "", err
	}
	return f.k.LocalUnix(fd)
}

func (f *faulty) RemoteUnix(fd int) (string, error) {
	if err := f.hit(fault.RemoteAddr, fd); err != nil {
		return "", err
	}
	return f.k.RemoteUnix(fd)
}

func (f *faulty) UnlinkUnix(path string) error {
	if err := f.hit(fault.Unlink, -1); err != nil {
		return err
	}
	return f.k.UnlinkUnix(path)
}

func (f *faulty) SendUnix(fd int, b []byte, to string) error {
	a := AskFaults(f.in, fault.Send, fd)
	if a.Errno != 0 {
		return a.Errno
	}
	if a.Drop {
		f.in.AddDropped(1)
		return nil
	}
	return f.k.SendUnix(fd, b, to)
}

func (f *faulty) RecvUnix(fd int, b []byte) (int, string, Flags, error) {
	a := AskFaults(f.in, fault.Recv, fd)
	if a.Errno != 0 {
		return 0, "", 0, a.Errno
	}
	n, from, flags, err := f.k.RecvUnix(fd, b)
	if a.Drop && err == nil {
		f.in.AddDropped(1)
		return 0, "", 0, syscall.EAGAIN
	}
	return n, from, flags, err
}

func (f *faulty) WriteFiles(fd int, v *Vector, files []int) (int, error) {
	a := AskFaults(f.in, fault.WriteFiles, fd)
	if a.Errno != 0 {
		return 0, a.Errno
	}
	if a.Short > 0 {
		c := v.cut(a.Short)
		defer v.restore(c)
	}
	return f.k.WriteFiles(fd, v, files)
}

func (f *faulty) ReadFiles(fd int, b []byte, files *Files) (int, error) {
	a := AskFaults(f.in, fault.ReadFiles, fd)
	if a.Errno != 0 {
		files.FDs, files.Truncated = files.FDs[:0], false
		return 0, a.Errno
	}
	return f.k.ReadFiles(fd, b[:shorten(len(b), a)], files)
}
