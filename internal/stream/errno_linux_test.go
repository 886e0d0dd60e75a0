//go:build linux

package stream

import "syscall"

// enonet is what "host isolated" becomes (ICMP type 3, code 8).
const enonet = syscall.ENONET
