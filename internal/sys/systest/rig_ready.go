package systest

import (
	"strings"
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

const readWrite = poll.Read | poll.Write

// ready tells how a descriptor is ready now, for who wants to hear of that; 0: not at all.
func (r *rig) ready(fd int, want poll.Interest) poll.Ready {
	r.Helper()
	p, err := r.NewPoller()
	r.must(err)
	defer p.Close()
	r.must(p.Add(fd, want, 1))
	for _, e := range r.wait(p, 1, 0) {
		return e.Ready
	}
	return 0
}

// becomes waits until a descriptor is ready in just these ways, and asserts what those hear of it that want less.
func (r *rig) becomes(fd int, want poll.Ready) {
	r.Helper()
	got := r.ready(fd, readWrite)
	for deadline := time.Now().Add(patience); got != want && time.Now().Before(deadline); got = r.ready(fd, readWrite) {
		time.Sleep(time.Millisecond)
	}
	if got != want {
		r.Fatalf("it is ready for %s, want %s", ways(got), ways(want))
	}
	for _, interest := range []poll.Interest{0, poll.Read, poll.Write} {
		heard := want & (poll.Ready(interest) | poll.Failed | poll.HungUp)
		if got := r.ready(fd, interest); got != heard {
			r.Fatalf("it is ready for %s, of which interest in %s hears %s, want %s",
				ways(want), ways(poll.Ready(interest)), ways(got), ways(heard))
		}
	}
}

// pendingError takes the error that a socket has pending.
func (r *rig) pendingError(fd int, want syscall.Errno) {
	r.Helper()
	r.equal(syscall.Errno(r.option(fd, sys.SocketError)), want)
}

// ways names what a descriptor is ready for.
func ways(ready poll.Ready) string {
	var names []string
	for i, name := range []string{"Readable", "Writable", "Failed", "HungUp"} {
		if ready&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "nothing"
	}
	return strings.Join(names, "|")
}
