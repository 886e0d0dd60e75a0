package sys_test

import (
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/sys"
)

// bytesKernel moves all that it is asked to move, and notes what that is.
type bytesKernel struct {
	sys.Kernel
	wrote  string
	queued int // connections and datagrams
}

func (k *bytesKernel) Accept(int) (int, netip.AddrPort, error) {
	k.queued--
	return 7, netip.AddrPort{}, nil
}

func (k *bytesKernel) Read(_ int, b []byte) (int, error) { return len(b), nil }

func (k *bytesKernel) Write(_ int, v *sys.Vector, _ bool) (int, error) {
	var all []string
	n := 0
	for _, b := range v.Bufs {
		all = append(all, string(b))
		n += len(b)
	}
	k.wrote = strings.Join(all, " ")
	return n, nil
}

func (k *bytesKernel) SendFile(_ int, _ *os.File, _ int64, n int, _ bool) (int, error) { return n, nil }

func (k *bytesKernel) WriteFiles(fd int, v *sys.Vector, _ []int) (int, error) {
	return k.Write(fd, v, false)
}

func (k *bytesKernel) ReadFiles(_ int, b []byte, f *sys.Files) (int, error) {
	f.FDs, f.Truncated = append(f.FDs[:0], 8), true
	return len(b), nil
}

func (k *bytesKernel) SendUnix(int, []byte, string) error {
	k.queued++
	return nil
}

func (k *bytesKernel) RecvUnix(_ int, b []byte) (int, string, sys.Flags, error) {
	k.queued--
	return len(b), "@", 0, nil
}

func faultyBytes(t *testing.T, plan string) (sys.Kernel, *bytesKernel, *fault.Injector) {
	t.Helper()
	p, err := fault.Parse(plan)
	if err != nil {
		t.Fatal(err)
	}
	in, err := fault.NewInjector(p)
	if err != nil {
		t.Fatal(err)
	}
	bare := &bytesKernel{}
	return sys.WithFaults(bare, in), bare, in
}

// TestFaultShortVector holds that a short write makes the first bytes of the vector, and leaves it as it was.
func TestFaultShortVector(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, bufs, short, want string }{
		{"in the first", "abc de f", "1", "a"},
		{"all of the first", "abc de f", "3", "abc"},
		{"in the second", "abc de f", "4", "abc d"},
		{"all but the last", "abc de f", "5", "abc de"},
		{"as many as there are", "abc de f", "6", "abc de f"},
		{"more than there are", "abc de f", "9", "abc de f"},
		{"of one", "abc", "2", "ab"},
		{"of none", "", "2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k, bare, _ := faultyBytes(t, "write=short:"+c.short+"; writefiles=short:"+c.short)
			v := sys.NewVector(3)
			for b := range strings.FieldsSeq(c.bufs) {
				v.Bufs = append(v.Bufs, []byte(b))
			}
			for call, write := range map[string]func() (int, error){
				"write":      func() (int, error) { return k.Write(3, v, true) },
				"writefiles": func() (int, error) { return k.WriteFiles(3, v, []int{3}) },
			} {
				n, err := write()
				if n != len(strings.ReplaceAll(c.want, " ", "")) || bare.wrote != c.want || err != nil {
					t.Errorf("%s: %d, %v with %q, want %q", call, n, err, bare.wrote, c.want)
				}
				if _, _ = bare.Write(3, v, false); bare.wrote != c.bufs {
					t.Errorf("%s leaves %q, want %q", call, bare.wrote, c.bufs)
				}
			}
		})
	}
}

func TestFaultShortBytes(t *testing.T) {
	t.Parallel()
	k, _, _ := faultyBytes(t, "read=short:3; readfiles=short:4; sendfile=short:5")
	for _, c := range []struct{ ask, read, files, sent int }{{9, 3, 4, 5}, {4, 3, 4, 4}, {2, 2, 2, 2}} {
		read, _ := k.Read(3, make([]byte, c.ask))
		files, _ := k.ReadFiles(3, make([]byte, c.ask), sys.NewFiles(1))
		sent, _ := k.SendFile(3, nil, 0, c.ask, false)
		if read != c.read || files != c.files || sent != c.sent {
			t.Errorf("of %d: %d, %d and %d, want %+v", c.ask, read, files, sent, c)
		}
	}
}

// TestFaultOfAccept holds "stays in the queue where this answers an errno".
func TestFaultOfAccept(t *testing.T) {
	t.Parallel()
	k, bare, _ := faultyBytes(t, "accept#1=EMFILE")
	bare.queued = 1
	if fd, _, err := k.Accept(3); fd != -1 || err != syscall.EMFILE || bare.queued != 1 {
		t.Errorf("%d, %v, and %d wait", fd, err, bare.queued)
	}
	if fd, _, err := k.Accept(3); fd != 7 || err != nil || bare.queued != 0 {
		t.Errorf("%d, %v, and %d wait", fd, err, bare.queued)
	}
}

// TestFaultEmptiesFiles holds "Errors: as Read; then f is empty".
func TestFaultEmptiesFiles(t *testing.T) {
	t.Parallel()
	k, _, _ := faultyBytes(t, "readfiles#2=ECONNRESET")
	f := sys.NewFiles(1)
	_, _ = k.ReadFiles(3, make([]byte, 1), f)
	if n, err := k.ReadFiles(3, make([]byte, 1), f); n != 0 || err != syscall.ECONNRESET || len(f.FDs) != 0 || f.Truncated {
		t.Errorf("%d, %v with %v, %v", n, err, f.FDs, f.Truncated)
	}
}

func TestFaultDropUnix(t *testing.T) {
	t.Parallel()
	k, bare, in := faultyBytes(t, "send#1=drop; recv#1=drop")
	bare.queued = 3
	if err := k.SendUnix(3, []byte{1}, ""); err != nil || bare.queued != 3 || in.Dropped() != 1 {
		t.Errorf("sends: %v, %d queued, %d dropped", err, bare.queued, in.Dropped())
	}
	if n, from, _, err := k.RecvUnix(3, make([]byte, 1)); n != 0 || from != "" || err != syscall.EAGAIN ||
		bare.queued != 2 || in.Dropped() != 2 {
		t.Errorf("receives: %d of %q, %v, %d queued, %d dropped", n, from, err, bare.queued, in.Dropped())
	}
	if n, from, _, err := k.RecvUnix(3, make([]byte, 1)); n != 1 || from != "@" || err != nil {
		t.Errorf("receives %d of %q, %v", n, from, err)
	}
}
