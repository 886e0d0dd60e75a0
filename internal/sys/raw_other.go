//go:build !linux

package sys

// CopyRaw copies all there is.
func CopyRaw(dst, raw []byte) (n int, cut bool) {
	n = copy(dst, raw)
	return n, n < len(raw)
}

// ParseRaw knows no control messages here.
func ParseRaw(raw []byte) (c Control, ok bool) { return Control{}, len(raw) == 0 }
