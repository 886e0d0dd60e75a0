//go:build !linux

package sys

import "net/netip"

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

type recvNative struct{}

func (recvNative) init([][]byte) {}

type sendNative struct{}

func (sendNative) init(int) {}

type reportNative struct{}

func (reportNative) init(int) {}
