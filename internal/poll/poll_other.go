//go:build !linux

package poll

import "github.com/weirnet/weir/internal/sys"

// Native is this system's backend, which it does not have: every call answers ErrUnsupported.
func Native() Backend {
	return Backend{
		Kernel:    sys.New(),
		NewPoller: func() (Poller, error) { return nil, sys.ErrUnsupported },
	}
}

// NativeSingle is Native here.
func NativeSingle() Backend { return Native() }
