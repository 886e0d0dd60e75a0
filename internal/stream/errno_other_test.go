//go:build !linux

package stream

import "syscall"

// enonet is an errno that Linux alone has; no call answers 0.
const enonet = syscall.Errno(0)
