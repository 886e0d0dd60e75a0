package fault

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Call is a call that can be hit. Its text is the trade's name, most often that of the system call.
type Call uint8

// The calls on descriptors, in the order of their text: socket, bind, connect, getsockname, getpeername,
// describe, dup, close, recv, send, recverr, setsockopt, getsockopt, meminfo, bindtodevice, membership.
const (
	Socket       Call = iota + 1 // makes a socket; no descriptor yet
	Bind                         // gives it its address
	Connect                      // sets its peer, or dissolves that
	LocalAddr                    // getsockname
	RemoteAddr                   // getpeername
	Describe                     // asks what a descriptor is that somebody else opened
	Duplicate                    // dup: makes another descriptor for it
	Close                        // ends a descriptor, whatever it answers
	Recv                         // receives datagrams
	Send                         // sends datagrams
	RecvErrors                   // recverr: takes reports from the error queue
	SetOption                    // setsockopt
	GetOption                    // getsockopt
	MemInfo                      // asks what the buffers hold, and what was dropped
	BindToDevice                 // keeps a socket to an interface
	Membership                   // joins or leaves a multicast group

	// The calls of a poller: poller, add, modify, remove, wait, wake.

	Poller // makes a poller; no descriptor
	Add    // registers a descriptor
	Modify // changes what is wanted of it
	Remove // ends its registration
	Wait   // waits for readiness; no descriptor
	Wake   // ends another's wait; no descriptor

	// The calls of streams and unix sockets, which also have those above: unblock, listen, accept, read, write,
	// sendfile, shutdown, tcpinfo, unlink, writefiles, readfiles.

	Unblock    // makes a descriptor non-blocking that somebody else opened
	Listen     // has a socket take connections
	Accept     // takes a connection, which stays in the queue where this answers an errno
	Read       // reads from a stream
	Write      // writes to a stream
	SendFile   // writes what is in a file
	CloseWrite // shutdown: ends the writing direction
	Info       // tcpinfo: asks how a connection goes
	Unlink     // removes a unix socket's path; no descriptor
	WriteFiles // writes to a unix stream, and passes descriptors
	ReadFiles  // reads from a unix stream, and takes descriptors
)

// callNames holds the text of each Call. No name ends in "x", which a rule's text counts on.
var callNames = [...]string{
	Socket: "socket", Bind: "bind", Connect: "connect", LocalAddr: "getsockname", RemoteAddr: "getpeername",
	Describe: "describe", Duplicate: "dup", Close: "close", Recv: "recv", Send: "send", RecvErrors: "recverr",
	SetOption: "setsockopt", GetOption: "getsockopt", MemInfo: "meminfo", BindToDevice: "bindtodevice",
	Membership: "membership", Poller: "poller", Add: "add", Modify: "modify", Remove: "remove", Wait: "wait",
	Wake: "wake", Unblock: "unblock", Listen: "listen", Accept: "accept", Read: "read", Write: "write",
	SendFile: "sendfile", CloseWrite: "shutdown", Info: "tcpinfo", Unlink: "unlink", WriteFiles: "writefiles",
	ReadFiles: "readfiles",
}

// String is the call's name as [Parse] reads it; "call(99)" for what is no call.
func (c Call) String() string {
	if !c.known() {
		return fmt.Sprintf("call(%d)", uint8(c))
	}
	return callNames[c]
}

// AllCalls walks all calls in their order.
func AllCalls() iter.Seq[Call] {
	return func(yield func(Call) bool) {
		for c := Socket; c.known(); c++ {
			if !yield(c) {
				return
			}
		}
	}
}

func (c Call) known() bool { return c != 0 && int(c) < len(callNames) }

// hasDescriptor says whether the call is about a descriptor that the caller has.
func (c Call) hasDescriptor() bool {
	return c.known() && !slices.Contains([]Call{Socket, Poller, Wait, Wake, Unlink}, c)
}

// movesMessages says whether the call moves messages that can be lost.
func (c Call) movesMessages() bool { return c == Recv || c == Send || c == RecvErrors }

// movesBytes says whether the call moves bytes, none of which a stream may lose.
func (c Call) movesBytes() bool {
	return c == Read || c == Write || c == SendFile || c == WriteFiles || c == ReadFiles
}

// isBatched says whether the call moves as many as there are.
func (c Call) isBatched() bool { return c.movesMessages() || c.movesBytes() || c == Wait }

func callNamed(name string) (Call, bool) {
	i := slices.Index(callNames[:], name)
	return Call(max(i, 0)), i > 0
}

// calls lists the names of the calls that pass.
func calls(pass func(Call) bool) string {
	var names []string
	for c := range AllCalls() {
		if pass(c) {
			names = append(names, c.String())
		}
	}
	return strings.Join(names, ", ")
}
