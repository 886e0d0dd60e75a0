//go:build linux

package dgram

import "golang.org/x/sys/unix"

const (
	msgTrunc  = unix.MSG_TRUNC
	msgCtrunc = unix.MSG_CTRUNC
)
