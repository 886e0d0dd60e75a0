package sys

import (
	"net/netip"
	"os"
)

func (f *faulty) Unblock(fd int) error                            { return f.k.Unblock(fd) }
func (f *faulty) Listen(fd, backlog int) error                    { return f.k.Listen(fd, backlog) }
func (f *faulty) Accept(fd int) (int, netip.AddrPort, error)      { return f.k.Accept(fd) }
func (f *faulty) Read(fd int, b []byte) (int, error)              { return f.k.Read(fd, b) }
func (f *faulty) Write(fd int, v *Vector, more bool) (int, error) { return f.k.Write(fd, v, more) }
func (f *faulty) SendFile(fd int, file *os.File, offset int64, n int, more bool) (int, error) {
	return f.k.SendFile(fd, file, offset, n, more)
}
func (f *faulty) CloseWrite(fd int) error                               { return f.k.CloseWrite(fd) }
func (f *faulty) Info(fd int) (TCPInfo, error)                          { return f.k.Info(fd) }
func (f *faulty) BindUnix(fd int, name string) error                    { return f.k.BindUnix(fd, name) }
func (f *faulty) ConnectUnix(fd int, name string) error                 { return f.k.ConnectUnix(fd, name) }
func (f *faulty) LocalUnix(fd int) (string, error)                      { return f.k.LocalUnix(fd) }
func (f *faulty) RemoteUnix(fd int) (string, error)                     { return f.k.RemoteUnix(fd) }
func (f *faulty) UnlinkUnix(path string) error                          { return f.k.UnlinkUnix(path) }
func (f *faulty) SendUnix(fd int, b []byte, to string) error            { return f.k.SendUnix(fd, b, to) }
func (f *faulty) RecvUnix(fd int, b []byte) (int, string, Flags, error) { return f.k.RecvUnix(fd, b) }
func (f *faulty) WriteFiles(fd int, v *Vector, files []int) (int, error) {
	return f.k.WriteFiles(fd, v, files)
}
func (f *faulty) ReadFiles(fd int, b []byte, files *Files) (int, error) {
	return f.k.ReadFiles(fd, b, files)
}
