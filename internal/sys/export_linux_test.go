//go:build linux

package sys

// Refusals is how many batched calls of a kernel were refused.
func Refusals(k Kernel) (recv, send int64) {
	s := k.(*real)
	return s.recvmmsg.refused.Load(), s.sendmmsg.refused.Load()
}
