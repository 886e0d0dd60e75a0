//go:build linux

package sys

import (
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

type vectorNative struct{ iovs []unix.Iovec }

func (v *vectorNative) init(n int) { v.iovs = make([]unix.Iovec, n) }

type filesNative struct{ control []byte }

func (f *filesNative) init(n int) { f.control = make([]byte, unix.CmsgSpace(4*n)) }

func (s *real) Unblock(fd int) error         { return unix.SetNonblock(fd, true) }
func (s *real) Listen(fd, backlog int) error { return unix.Listen(fd, backlog) }
func (s *real) Accept(fd int) (int, netip.AddrPort, error) {
	panic("todo")
}
func (s *real) Read(fd int, b []byte) (int, error)              { panic("todo") }
func (s *real) Write(fd int, v *Vector, more bool) (int, error) { panic("todo") }
func (s *real) SendFile(fd int, f *os.File, offset int64, n int, more bool) (int, error) {
	panic("todo")
}
func (s *real) CloseWrite(fd int) error                                { return unix.Shutdown(fd, unix.SHUT_WR) }
func (s *real) Info(fd int) (TCPInfo, error)                           { panic("todo") }
func (s *real) BindUnix(fd int, name string) error                     { panic("todo") }
func (s *real) ConnectUnix(fd int, name string) error                  { panic("todo") }
func (s *real) LocalUnix(fd int) (string, error)                       { panic("todo") }
func (s *real) RemoteUnix(fd int) (string, error)                      { panic("todo") }
func (s *real) UnlinkUnix(path string) error                           { panic("todo") }
func (s *real) SendUnix(fd int, b []byte, to string) error             { panic("todo") }
func (s *real) RecvUnix(fd int, b []byte) (int, string, Flags, error)  { panic("todo") }
func (s *real) WriteFiles(fd int, v *Vector, files []int) (int, error) { panic("todo") }
func (s *real) ReadFiles(fd int, b []byte, f *Files) (int, error)      { panic("todo") }
