package weir

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys/systest"
)

// TestMain runs another program where a test asks for one by the environment. It fails a run that leaves a goroutine
// or an open descriptor behind.
func TestMain(m *testing.M) {
	if err := systest.RefuseIfAsked(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for env, program := range map[string]func(spec string) error{
		floodEnv: flood, sharerEnv: runSharer, bulkEnv: runBulk, limitedEnv: runLimited, streamPeerEnv: runStreamPeer,
	} {
		spec := os.Getenv(env)
		if spec == "" {
			continue
		}
		if err := program(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if r, w, err := os.Pipe(); err == nil { // has the runtime open its own poller, which stays
		_, _ = r.Close(), w.Close()
	}
	before := openFiles()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if after := openFiles(); after > before {
			fmt.Fprintf(os.Stderr, "%d descriptors open before the tests, %d after\n", before, after)
			code = 1
		}
	}
	os.Exit(code)
}

// openFiles is the number of sockets and pollers that the process has open, or 0 where that is not told.
func openFiles() (n int) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && (len(target) > 6 && target[:6] == "socket" || target == "anon_inode:[eventpoll]" ||
			target == "anon_inode:[eventfd]") {
			n++
		}
	}
	return n
}

var (
	loopback4 = netip.MustParseAddrPort("127.0.0.1:0")
	loopback6 = netip.MustParseAddrPort("[::1]:0")
)

// onEachKernel runs a test in memory and on the real kernel.
func onEachKernel(t *testing.T, test func(t *testing.T, k *Kernel)) {
	t.Run("memory", func(t *testing.T) { test(t, NewKernel(memsys.New().Backend())) })
	t.Run("kernel", func(t *testing.T) { test(t, realKernel(t)) })
}

// realKernel is this machine's, less what the environment switches off.
func realKernel(t *testing.T) *Kernel {
	t.Helper()
	cfg, err := Config{}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Kernel
}

// inBubble runs a test on a network in memory, with a clock that stands still while the loop runs.
func inBubble(t *testing.T, test func(t *testing.T, net *memsys.Net)) {
	synctest.Test(t, func(t *testing.T) { test(t, memsys.New()) })
}

func newLoop(t *testing.T, cfg Config) *Loop {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

const runTimeout = 30 * time.Second

// run runs the loop until a callback closes it, and fails the test if none does.
func run(t *testing.T, l *Loop) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), runTimeout, fmt.Errorf("nothing ended the loop"))
	defer cancel()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T, l *Loop, bound Bound, onDatagram func(u *UDP, d *Datagram)) *UDP {
	t.Helper()
	u, err := l.ListenUDP(loopback4, UDPConfig{Bound: bound}, UDPHandler{OnDatagram: onDatagram})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// sendNow queues n small datagrams for to and gives them to the kernel.
func sendNow(t *testing.T, from *UDP, to netip.AddrPort, n int) {
	t.Helper()
	for i := range n {
		if err := from.Send([]byte{byte(i)}, to); err != nil {
			t.Fatal(err)
		}
	}
	from.flush()
}

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// told collects what OnError hears.
type told []error

func (e *told) onError(_ *UDP, err error) { *e = append(*e, err) }

// count is the number of errors that match.
func (e told) count(target error) (n int) {
	for _, err := range e {
		if errors.Is(err, target) {
			n++
		}
	}
	return n
}
