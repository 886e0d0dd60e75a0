package weir

import (
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/weirnet/weir/internal/stream"
	"github.com/weirnet/weir/internal/sys"
)

// Files are descriptors that came over a unix connection, close-on-exec.
type Files struct {
	fds   []int // -1: taken
	batch *sys.Files
}

// Len is their number.
func (f *Files) Len() int { return len(f.fds) }

// FD is the descriptor i, lent until OnFiles returns; -1 once it was taken. AdoptConn, AdoptListener and AdoptUDP make
// one of their own of it.
func (f *Files) FD(i int) int { return f.fds[i] }

// Take gives the descriptor i to the caller, who has to close it.
func (f *Files) Take(i int) int {
	fd := f.fds[i]
	f.fds[i] = -1
	return fd
}

// Truncated tells that there were more than ConnConfig.MaxFiles, or than the process may have open. They are closed.
func (f *Files) Truncated() bool { return f.batch.Truncated }

// readFiles reads bytes and the descriptors that come with them.
func (c *Conn) readFiles(buf []byte) (n int, err error) {
	l := c.loop
	if l.files == nil || l.files.Room() < c.limits.files {
		l.files = sys.NewFiles(c.limits.files)
	}
	f := l.files
	n, err = l.kernel.ReadFiles(c.fd, buf, f)
	if err != nil || len(f.FDs) == 0 && !f.Truncated {
		return n, err
	}
	l.stats.streams.filesReceived.Add(uint64(len(f.FDs)))
	files := Files{fds: f.FDs, batch: f}
	over := len(f.FDs) - c.limits.files // the room is the largest of the loop's connections
	for i := range max(over, 0) {
		c.closeFD(files.Take(c.limits.files + i))
	}
	if over > 0 {
		files.fds, f.Truncated = f.FDs[:c.limits.files], true
	}
	defer func() { // also where the callback panics
		c.closeFDs(files.fds)
		f.FDs = f.FDs[:0]
	}()
	if c.handler.OnFiles != nil {
		c.handler.OnFiles(c, &files)
	}
	return n, nil
}

// WriteFiles is Write of b with descriptors, which go with its first byte. They are copied, and stay the caller's to
// close. It takes all or nothing.
//
// The peer gets them with a read in which b's first byte is, perhaps behind what was written before, and nothing of what
// is written after (unix(7), SCM_RIGHTS).
//
//   - Errors: as Write; ErrWouldBlock takes nothing; *OpError: EINVAL for no bytes, no descriptors or more than 253;
//     EBADF, EMFILE; EOPNOTSUPP for a TCP connection.
func (c *Conn) WriteFiles(b []byte, fds ...int) error {
	switch err := c.mayWrite(); {
	case err != nil:
		return err
	case c.family != sys.UnixFamily:
		return c.opError("send", syscall.EOPNOTSUPP)
	case len(b) == 0 || len(fds) == 0 || len(fds) > sys.MaxFiles:
		return c.opError("send", fmt.Errorf("%d bytes with %d descriptors: %w", len(b), len(fds), syscall.EINVAL))
	case c.out.Bytes() > 0 && c.out.Bytes()+len(b) > c.limits.writeBytes || c.out.Items() >= maxItems:
		c.refuse()
		return ErrWouldBlock
	}
	copies, err := c.duplicate(fds)
	if err != nil {
		return c.opError("send", err)
	}
	begins := c.out.Empty()
	c.out.PushFiles(&c.loop.chunks, b, copies)
	c.queued(begins)
	return nil
}

// maxItems is how many files and messages with descriptors may wait.
const maxItems = 64

// duplicate makes the descriptors that wait in the queue.
func (c *Conn) duplicate(fds []int) ([]int, error) {
	copies := make([]int, 0, len(fds))
	for _, fd := range fds {
		dup, err := c.loop.kernel.Duplicate(fd)
		if err != nil {
			c.closeFDs(copies)
			return nil, err
		}
		copies = append(copies, dup)
	}
	return copies, nil
}

func (c *Conn) closeFDs(fds []int) {
	for _, fd := range fds {
		c.closeFD(fd)
	}
}

func (c *Conn) closeFD(fd int) {
	if fd >= 0 {
		_ = c.loop.kernel.Close(fd)
		c.loop.descriptorFreed()
	}
}

// SendFile writes n bytes of f from offset on, behind what was written before, without a copy where the kernel can
// (sendfile(2)). f is lent until done is called, once: with nil when the kernel has taken all, with ErrClosed when the
// connection closed or broke before. A file that ends before n bytes were read, or cannot be read, resets the connection,
// as a stream with a hole is worse than none: done and OnClose get io.ErrUnexpectedEOF, or why it cannot.
//
//   - Errors: as Write; ErrWouldBlock when 64 files wait; *OpError: EINVAL for a negative offset or n, or no done.
//     Where there is an error done is not called.
func (c *Conn) SendFile(f *os.File, offset, n int64, done func(error)) error {
	switch err := c.mayWrite(); {
	case err != nil:
		return err
	case offset < 0 || n < 0 || done == nil || f == nil:
		return c.opError("send", syscall.EINVAL)
	case c.out.Items() >= maxItems:
		c.refuse()
		return ErrWouldBlock
	}
	file := &stream.File{File: f, Offset: offset, Left: n, Done: done}
	if n == 0 {
		c.fileDone(file, nil)
		return nil
	}
	begins := c.out.Empty()
	c.out.PushFile(file)
	c.queued(begins)
	return nil
}

// queued has what was put in the queue go out; what was there before has been waiting since then.
func (c *Conn) queued(begins bool) {
	if begins {
		c.touchWrite()
	}
	c.flushSoon()
}

// sendFileBytes is how much of a file goes out with one call.
const sendFileBytes = 256 << 10

// flushFile writes a piece of the file that is first in the queue.
func (c *Conn) flushFile(f *stream.File) (n int, ok bool) {
	l := c.loop
	size := int(min(f.Left, sendFileBytes))
	if !f.Copy {
		n, err := l.kernel.SendFile(c.fd, f.File, f.Offset, size, f.Left > int64(size))
		if err == nil && n == 0 {
			return c.fileFailed(io.ErrUnexpectedEOF)
		}
		if !slices.Contains(cannotSendFile, err) {
			return c.flushedFile(n, size, err)
		}
		f.Copy = true
		l.fast.lostSendFile(err, c.name())
	}
	piece, err := readPiece(f, min(size, largeCopyBytes))
	if err != nil {
		return c.fileFailed(err)
	}
	l.vector.Bufs = append(l.vector.Bufs[:0], piece)
	n, err = l.kernel.Write(c.fd, l.vector, f.Left > int64(len(piece)))
	return c.flushedFile(n, len(piece), err)
}

// flushedFile takes note of what the kernel has taken of a piece of that size.
func (c *Conn) flushedFile(n, size int, err error) (int, bool) {
	c.loop.stats.streams.writeCalls.Add(1)
	if err != nil {
		c.writeFailed(err)
		return 0, false
	}
	if done := c.out.WroteFile(int64(n)); done != nil {
		c.fileDone(done, nil)
	}
	c.wrote(n, 0)
	if n < size {
		c.blocked = true
		c.changed()
	}
	return n, n == size
}

// fileFailed gives up a file that has not what it should, and the connection with it.
func (c *Conn) fileFailed(err error) (n int, ok bool) {
	c.fileDone(c.out.DropFile(), err)
	c.abort(c.opError("send", err))
	return 0, false
}

// largeCopyBytes is how much of a file is read at a time where it has to be.
const largeCopyBytes = 64 << 10

// readPiece reads up to n bytes of a file.
func readPiece(f *stream.File, n int) ([]byte, error) {
	buf := make([]byte, n)
	n, err := f.File.ReadAt(buf, f.Offset)
	switch {
	case n > 0:
		return buf[:n], nil // an error comes again
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	default:
		return nil, err
	}
}

// cannotSendFile are the answers of a kernel that cannot do it with this file, or not at all, or that are about the
// file: reading it tells.
var cannotSendFile = []error{
	syscall.EINVAL, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EPERM, ErrUnsupported,
	syscall.EBADF, syscall.EIO, syscall.ESPIPE, syscall.EOVERFLOW,
}

// fileDone tells who gave a file that it is not needed any more, at the end of the turn.
func (c *Conn) fileDone(f *stream.File, err error) {
	c.filesDone = append(c.filesDone, fileResult{f.Done, err})
	c.loop.turnEnd.add(c)
}

// fileResult is a callback that was put off.
type fileResult struct {
	done func(error)
	err  error
}
