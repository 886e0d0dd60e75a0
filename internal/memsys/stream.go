package memsys

import (
	"net/netip"
	"os"

	"github.com/weirnet/weir/internal/sys"
)

func (k kernel) Unblock(fd int) error                                { panic("todo") }
func (k kernel) Listen(fd, backlog int) error                        { panic("todo") }
func (k kernel) Accept(fd int) (int, netip.AddrPort, error)          { panic("todo") }
func (k kernel) Read(fd int, b []byte) (int, error)                  { panic("todo") }
func (k kernel) Write(fd int, v *sys.Vector, more bool) (int, error) { panic("todo") }
func (k kernel) SendFile(fd int, file *os.File, offset int64, n int, more bool) (int, error) {
	panic("todo")
}
func (k kernel) CloseWrite(fd int) error                                    { panic("todo") }
func (k kernel) Info(fd int) (sys.TCPInfo, error)                           { panic("todo") }
func (k kernel) BindUnix(fd int, name string) error                         { panic("todo") }
func (k kernel) ConnectUnix(fd int, name string) error                      { panic("todo") }
func (k kernel) LocalUnix(fd int) (string, error)                           { panic("todo") }
func (k kernel) RemoteUnix(fd int) (string, error)                          { panic("todo") }
func (k kernel) UnlinkUnix(path string) error                               { panic("todo") }
func (k kernel) SendUnix(fd int, b []byte, to string) error                 { panic("todo") }
func (k kernel) RecvUnix(fd int, b []byte) (int, string, sys.Flags, error)  { panic("todo") }
func (k kernel) WriteFiles(fd int, v *sys.Vector, files []int) (int, error) { panic("todo") }
func (k kernel) ReadFiles(fd int, b []byte, files *sys.Files) (int, error)  { panic("todo") }
