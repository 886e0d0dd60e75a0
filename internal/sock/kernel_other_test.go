//go:build !linux

package sock

import "github.com/weirnet/weir/internal/sys"

// realKernel is the system's own, nil where there is none.
func realKernel() sys.Kernel { return nil }
