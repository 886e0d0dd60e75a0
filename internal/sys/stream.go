package sys

// Vector is what a Write takes: buffers that go out one behind the other, in one call. The caller sets Bufs, with at
// most as many as there is room for and none of them empty, and keeps them unchanged until the call returns.
type Vector struct {
	Bufs   [][]byte
	native vectorNative
}

// NewVector makes a vector with room for n buffers; Linux takes at most 1,024 (UIO_MAXIOV).
func NewVector(n int) *Vector {
	v := &Vector{Bufs: make([][]byte, 0, n)}
	v.native.init(n)
	return v
}

// MaxFiles is the most descriptors that one message can carry (Linux: SCM_MAX_FD).
const MaxFiles = 253

// Files is room for descriptors that come with the bytes of a unix socket. Who receives them owns them.
type Files struct {
	FDs       []int
	Truncated bool // there were more than there was room for, or than the process may have open: they are closed
	room      int
	native    filesNative
}

// NewFiles makes room for n descriptors, at most MaxFiles.
func NewFiles(n int) *Files {
	f := &Files{FDs: make([]int, 0, n), room: n}
	f.native.init(n)
	return f
}

// Room is the number of descriptors that there is room for.
func (f *Files) Room() int { return f.room }
