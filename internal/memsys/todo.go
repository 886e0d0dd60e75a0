package memsys

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

func (k kernel) Describe(int) (sys.Description, error)              { return sys.Description{}, sys.ErrUnsupported }
func (k kernel) Duplicate(int) (int, error)                         { return -1, sys.ErrUnsupported }
func (k kernel) RecvErrors(int, *sys.ReportBatch, int) (int, error) { return 0, syscall.EAGAIN }
func (k kernel) Unbatched() (recv, send error)                      { return nil, nil }
func (k kernel) BindToDevice(int, string) error                     { return sys.ErrUnsupported }
func (k kernel) Membership(int, sys.Membership, bool) error         { return sys.ErrUnsupported }
