package sock

import (
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// counted is a kernel that remembers what is open.
type counted struct {
	sys.Kernel
	open map[int]bool
}

func (k counted) Socket(f sys.Family, kind sys.Kind) (int, error) {
	return k.opened(k.Kernel.Socket(f, kind))
}

func (k counted) Duplicate(fd int) (int, error) { return k.opened(k.Kernel.Duplicate(fd)) }

func (k counted) Accept(fd int) (int, netip.AddrPort, error) {
	conn, peer, err := k.Kernel.Accept(fd)
	conn, err = k.opened(conn, err)
	return conn, peer, err
}

func (k counted) opened(fd int, err error) (int, error) {
	if err == nil {
		k.open[fd] = true
	}
	return fd, err
}

func (k counted) Close(fd int) error {
	delete(k.open, fd)
	return k.Kernel.Close(fd)
}

// onKernels runs a test on each kernel there is, and sees that it closes what it opens.
func onKernels(t *testing.T, test func(t *testing.T, k counted)) {
	t.Parallel()
	for name, k := range map[string]sys.Kernel{"memory": memsys.New().Backend().Kernel, "real": realKernel()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if k == nil {
				t.Skip("no kernel of its own here")
			}
			c := counted{k, map[int]bool{}}
			test(t, c)
			for fd := range c.open {
				_ = c.Close(fd)
			}
		})
	}
}

// mustClose is Close of what is open.
func (k counted) mustClose(t *testing.T, fd int) {
	t.Helper()
	if err := k.Close(fd); err != nil {
		t.Error(err)
	}
}

// streamSettings is settings that need every option there is.
func streamSettings() StreamSettings {
	return StreamSettings{
		KeepAlive: 30 * time.Second, KeepInterval: 7 * time.Second, KeepCount: 4, UserTimeout: 12 * time.Second,
		RecvBufferBytes: 9000, SendBufferBytes: 8000, NotSentLowAtBytes: 4321, TTL: 9, TrafficClass: 0x20,
	}
}

// settingNames is the options of streamSettings in the order in which a TCP socket of IPv4 is told them.
func settingNames() []string {
	return []string{
		"RecvBufferBytes", "SendBufferBytes", "Delay", "KeepAlive", "KeepAlive", "KeepInterval", "KeepCount",
		"UserTimeout", "NotSentLowAtBytes", "TTL", "TrafficClass",
	}
}

// opening is a way to open a socket, in a kernel that is prepared for it.
type opening struct {
	name    string
	prepare func(t *testing.T, k counted) (open func(sys.Kernel) (int, error))
	options []string // the steps that SetOption is called for
	path    string   // that must not be left
}

func openings(dir string) []opening {
	path := filepath.Join(dir, "socket")
	plain := func(open func(sys.Kernel) (int, error)) func(*testing.T, counted) func(sys.Kernel) (int, error) {
		return func(*testing.T, counted) func(sys.Kernel) (int, error) { return open }
	}
	o := TCPOptions{Local: addr("127.0.0.1:0"), ReusePort: true, StreamSettings: streamSettings()}
	buffers := settingNames()[:2]
	return []opening{
		{"listen", plain(func(k sys.Kernel) (int, error) {
			fd, _, err := ListenTCP(k, o, time.Second, 5)
			return fd, err
		}), slices.Concat([]string{"ReuseAddr", "ReusePort"}, settingNames(), []string{"DeferAccept"}), ""},
		{"connect", func(t *testing.T, k counted) func(sys.Kernel) (int, error) {
			peer := listening(t, k)
			return func(k sys.Kernel) (int, error) {
				fd, _, _, err := ConnectTCP(k, o, peer)
				return fd, err
			}
		}, slices.Concat([]string{"ReusePort"}, settingNames()), ""},
		{"listen at a path", plain(func(k sys.Kernel) (int, error) {
			return ListenUnix(k, path, streamSettings(), 5, false)
		}), buffers, path},
		{"replace a path", func(t *testing.T, k counted) func(sys.Kernel) (int, error) {
			leaveDead(t, k, path)
			return func(k sys.Kernel) (int, error) { return ListenUnix(k, path, streamSettings(), 5, true) }
		}, buffers, ""},
		{"connect to a path", func(t *testing.T, k counted) func(sys.Kernel) (int, error) {
			if _, err := ListenUnix(k, path, StreamSettings{}, 5, true); err != nil {
				t.Fatal(err)
			}
			return func(k sys.Kernel) (int, error) { return ConnectUnix(k, path, streamSettings()) }
		}, buffers, ""},
		{"datagrams", func(t *testing.T, k counted) func(sys.Kernel) (int, error) {
			peer := filepath.Join(dir, "peer")
			if _, err := OpenUnixgram(k, peer, "", StreamSettings{}); err != nil {
				t.Fatal(err)
			}
			return func(k sys.Kernel) (int, error) { return OpenUnixgram(k, path, peer, streamSettings()) }
		}, buffers, path},
		{"adopt a stream", func(t *testing.T, k counted) func(sys.Kernel) (int, error) {
			fd, _, _, err := ConnectTCP(k, TCPOptions{}, listening(t, k))
			if err != nil {
				t.Fatal(err)
			}
			return func(k sys.Kernel) (int, error) {
				own, _, err := AdoptStream(k, fd)
				return own, err
			}
		}, nil, ""},
		{"adopt a listener", func(t *testing.T, k counted) func(sys.Kernel) (int, error) {
			fd, err := ListenUnix(k, path, StreamSettings{}, 5, true)
			if err != nil {
				t.Fatal(err)
			}
			return func(k sys.Kernel) (int, error) {
				own, _, err := AdoptListener(k, fd)
				return own, err
			}
		}, nil, ""},
	}
}

// TestStreamFaults fails every call of every opening once: the error names the step, and nothing is left.
func TestStreamFaults(t *testing.T) {
	onKernels(t, func(t *testing.T, k counted) {
		for i := range openings("") {
			none := hitOne(t, k, i, fault.Plan{})
			if none.err != nil {
				t.Errorf("%s, no fault: %v", none.opening.name, none.err)
				continue
			}
			if adopts := strings.HasPrefix(none.opening.name, "adopt"); adopts != (none.calls[fault.Unblock] == 1) {
				t.Errorf("%s: %d calls of Unblock", none.opening.name, none.calls[fault.Unblock])
			}
			for call, n := range none.calls {
				for at := 1; at <= n && call != fault.Close; at++ {
					rule := fault.Rule{Call: call, From: at, Action: fault.Action{Errno: syscall.ENOMEM}}
					hitOne(t, k, i, fault.Plan{Rules: []fault.Rule{rule}}).check(t, call, at)
				}
			}
		}
	})
}

// outcome is what became of an opening.
type outcome struct {
	opening opening
	calls   map[fault.Call]int
	fd      int
	err     error
	left    int // descriptors more than before
	path    bool
}

func hitOne(t *testing.T, k counted, i int, p fault.Plan) outcome {
	t.Helper()
	o := openings(t.TempDir())[i]
	open := o.prepare(t, k)
	before := len(k.open)
	in, err := fault.NewInjector(p)
	if err != nil {
		t.Fatal(err)
	}
	out := outcome{opening: o}
	out.fd, out.err = open(sys.WithFaults(k, in))
	out.left, out.calls = len(k.open)-before, in.Calls()
	out.path = o.path != "" && k.UnlinkUnix(o.path) == nil
	for fd := range k.open {
		k.mustClose(t, fd)
	}
	return out
}

func (o outcome) check(t *testing.T, call fault.Call, at int) {
	t.Helper()
	name := o.opening.name
	if !errors.Is(o.err, syscall.ENOMEM) || o.fd != -1 || o.left != 0 || o.path {
		t.Errorf("%s, %v %d fails: fd %d, %v; %d descriptors are left, a path: %v", name, call, at, o.fd, o.err, o.left, o.path)
	}
	var e *Error
	if call == fault.Describe {
		return // told with the descriptor's number
	}
	if !errors.As(o.err, &e) {
		t.Errorf("%s, %v %d fails: %v names no step", name, call, at, o.err)
		return
	}
	want := map[fault.Call]string{fault.Duplicate: "dup"}[call]
	switch {
	case call == fault.SetOption:
		want = o.opening.options[at-1]
	case call == fault.GetOption && strings.HasPrefix(name, "adopt"):
		want = "linger"
	case call == fault.GetOption:
		want = []string{"RecvBufferBytes", "SendBufferBytes"}[at-1]
	case name == "replace a path" && call != fault.Listen && (call != fault.Socket || at > 1):
		want = "bind"
	case want == "":
		want = call.String()
	}
	if e.Step != want {
		t.Errorf("%s, %v %d fails: the step is %q, want %q", name, call, at, e.Step, want)
	}
}

// listening opens a listener on this machine.
func listening(t *testing.T, k sys.Kernel) netip.AddrPort {
	t.Helper()
	fd, _, err := ListenTCP(k, TCPOptions{Local: addr("127.0.0.1:0")}, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	at, err := k.LocalAddr(fd)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// leaveDead leaves a path without a socket behind.
func leaveDead(t *testing.T, k sys.Kernel, path string) {
	t.Helper()
	fd, err := ListenUnix(k, path, StreamSettings{}, 5, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Close(fd); err != nil {
		t.Fatal(err)
	}
}
