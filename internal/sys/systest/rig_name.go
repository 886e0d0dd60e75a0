package systest

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// path is where a unix socket can be made. A test's own directory bears the name of the test, which may be longer than
// a socket's address.
func (r *rig) path() string {
	r.Helper()
	dir, err := os.MkdirTemp("", "weir")
	r.must(err)
	r.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// abstract is a name that no other test has: a path of its own, as letters.
func (r *rig) abstract() string {
	r.Helper()
	return "@" + r.path()
}

// unixSocket makes a unix socket of that kind.
func (r *rig) unixSocket(kind sys.Kind) int {
	r.Helper()
	fd, err := r.Kernel.Socket(sys.UnixFamily, kind)
	r.must(err)
	return fd
}

// boundUnix makes a unix socket with a name.
func (r *rig) boundUnix(kind sys.Kind, name string) int {
	r.Helper()
	fd := r.unixSocket(kind)
	r.must(r.Kernel.BindUnix(fd, name))
	return fd
}

func (r *rig) unixListener(name string, backlog int) int {
	r.Helper()
	fd := r.boundUnix(sys.UnixStream, name)
	r.must(r.Kernel.Listen(fd, backlog))
	return fd
}

// connectedUnix makes a unix socket of that kind with a peer.
func (r *rig) connectedUnix(kind sys.Kind, to string) int {
	r.Helper()
	fd := r.unixSocket(kind)
	r.must(r.Kernel.ConnectUnix(fd, to))
	return fd
}

func (r *rig) unixDial(name string) int {
	r.Helper()
	return r.connectedUnix(sys.UnixStream, name)
}

func (r *rig) localUnix(fd int) string {
	r.Helper()
	name, err := r.Kernel.LocalUnix(fd)
	r.must(err)
	return name
}

func (r *rig) remoteUnix(fd int) string {
	r.Helper()
	name, err := r.Kernel.RemoteUnix(fd)
	r.must(err)
	return name
}

func (r *rig) noRemoteUnix(fd int) {
	r.Helper()
	name, err := r.Kernel.RemoteUnix(fd)
	r.want(err, syscall.ENOTCONN)
	r.equal(name, "")
}

func (r *rig) sendUnix(fd int, payload, to string) {
	r.Helper()
	r.must(r.Kernel.SendUnix(fd, []byte(payload), to))
}

// sendUnixErr is a SendUnix that must fail.
func (r *rig) sendUnixErr(fd int, to string, want error) {
	r.Helper()
	r.want(r.Kernel.SendUnix(fd, []byte("refused"), to), want)
}

// recvUnix takes a datagram that must be there.
func (r *rig) recvUnix(fd int, wantPayload, wantFrom string) {
	r.Helper()
	r.await(fd, poll.Readable)
	b := make([]byte, 64)
	n, from, flags, err := r.Kernel.RecvUnix(fd, b)
	r.must(err)
	r.equal(string(b[:n]), wantPayload)
	r.equal(from, wantFrom)
	r.equal(flags, sys.Flags(0))
}

// recvUnixErr is a RecvUnix that must fail.
func (r *rig) recvUnixErr(fd int, want error) {
	r.Helper()
	n, from, flags, err := r.Kernel.RecvUnix(fd, make([]byte, 64))
	r.want(err, want)
	r.equal(n, 0)
	r.equal(from, "")
	r.equal(flags, sys.Flags(0))
}

// fillUnix sends datagrams until there is no room, and tells how many there was room for.
func (r *rig) fillUnix(fd int, to string) (sent int) {
	r.Helper()
	for err := error(nil); ; sent++ {
		if err = r.Kernel.SendUnix(fd, []byte("x"), to); err != nil {
			r.want(err, syscall.EAGAIN)
			return sent
		}
		if sent == 1<<20 {
			r.Fatal("there is no end of room")
		}
	}
}
