//go:build !linux

package sys

import (
	"net/netip"
	"os"
)

// New returns a kernel that answers ErrUnsupported: there is no native one for this system yet.
func New() Kernel { return unsupported{} }

// NewSingle is New here.
func NewSingle() Kernel { return unsupported{} }

type unsupported struct{}

func (unsupported) Socket(Family, Kind) (int, error)            { return -1, ErrUnsupported }
func (unsupported) Bind(int, netip.AddrPort) error              { return ErrUnsupported }
func (unsupported) Connect(int, netip.AddrPort) error           { return ErrUnsupported }
func (unsupported) LocalAddr(int) (netip.AddrPort, error)       { return netip.AddrPort{}, ErrUnsupported }
func (unsupported) RemoteAddr(int) (netip.AddrPort, error)      { return netip.AddrPort{}, ErrUnsupported }
func (unsupported) Close(int) error                             { return ErrUnsupported }
func (unsupported) Recv(int, *RecvBatch, int) (int, error)      { return 0, ErrUnsupported }
func (unsupported) Send(int, *SendBatch, int, int) (int, error) { return 0, ErrUnsupported }
func (unsupported) SetOption(int, Option, int) error            { return ErrUnsupported }
func (unsupported) GetOption(int, Option) (int, error)          { return 0, ErrUnsupported }
func (unsupported) MemInfo(int) (MemInfo, error)                { return MemInfo{}, ErrUnsupported }

func (unsupported) Describe(int) (Description, error)              { return Description{}, ErrUnsupported }
func (unsupported) Duplicate(int) (int, error)                     { return -1, ErrUnsupported }
func (unsupported) RecvErrors(int, *ReportBatch, int) (int, error) { return 0, ErrUnsupported }
func (unsupported) Unbatched() (recv, send error)                  { return ErrUnsupported, ErrUnsupported }
func (unsupported) BindToDevice(int, string) error                 { return ErrUnsupported }
func (unsupported) Membership(int, Membership, bool) error         { return ErrUnsupported }

func (unsupported) Unblock(int) error     { return ErrUnsupported }
func (unsupported) Listen(int, int) error { return ErrUnsupported }
func (unsupported) Accept(int) (int, netip.AddrPort, error) {
	return -1, netip.AddrPort{}, ErrUnsupported
}
func (unsupported) Read(int, []byte) (int, error)                         { return 0, ErrUnsupported }
func (unsupported) Write(int, *Vector, bool) (int, error)                 { return 0, ErrUnsupported }
func (unsupported) SendFile(int, *os.File, int64, int, bool) (int, error) { return 0, ErrUnsupported }
func (unsupported) CloseWrite(int) error                                  { return ErrUnsupported }
func (unsupported) Info(int) (TCPInfo, error)                             { return TCPInfo{}, ErrUnsupported }

func (unsupported) BindUnix(int, string) error                       { return ErrUnsupported }
func (unsupported) ConnectUnix(int, string) error                    { return ErrUnsupported }
func (unsupported) LocalUnix(int) (string, error)                    { return "", ErrUnsupported }
func (unsupported) RemoteUnix(int) (string, error)                   { return "", ErrUnsupported }
func (unsupported) UnlinkUnix(string) error                          { return ErrUnsupported }
func (unsupported) SendUnix(int, []byte, string) error               { return ErrUnsupported }
func (unsupported) RecvUnix(int, []byte) (int, string, Flags, error) { return 0, "", 0, ErrUnsupported }
func (unsupported) WriteFiles(int, *Vector, []int) (int, error)      { return 0, ErrUnsupported }
func (unsupported) ReadFiles(int, []byte, *Files) (int, error)       { return 0, ErrUnsupported }

type vectorNative struct{}

func (vectorNative) init(int) {}

type filesNative struct{}

func (filesNative) init(int) {}

type recvNative struct{}

func (recvNative) init([][]byte) {}

type sendNative struct{}

func (sendNative) init(int) {}

type reportNative struct{}

func (reportNative) init(int) {}
