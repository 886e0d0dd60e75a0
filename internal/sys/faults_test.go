package sys_test

import (
	"errors"
	"net/netip"
	"reflect"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// faulty is a network in memory with faults, and a bound socket on it with n datagrams in its queue, from itself.
func faulty(t *testing.T, plan string, n int) (k sys.Kernel, fd int, in *fault.Injector) {
	t.Helper()
	p, err := fault.Parse(plan)
	if err == nil {
		in, err = fault.NewInjector(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	bare := memsys.New().Backend().Kernel
	fd, err = bare.Socket(sys.IPv4, sys.UDP)
	if err != nil {
		t.Fatal(err)
	}
	if err := bare.Bind(fd, netip.MustParseAddrPort("127.0.0.1:0")); err != nil {
		t.Fatal(err)
	}
	if n > 0 {
		if sent, err := bare.Send(fd, toSelf(t, bare, fd, n), 0, n); sent != n {
			t.Fatalf("sent %d: %v", sent, err)
		}
	}
	return sys.WithFaults(bare, in), fd, in
}

func toSelf(t *testing.T, k sys.Kernel, fd, n int) *sys.SendBatch {
	t.Helper()
	self, err := k.LocalAddr(fd)
	if err != nil {
		t.Fatal(err)
	}
	b := sys.NewSendBatch(n)
	for i := range b.Msgs {
		b.Msgs[i] = sys.Message{Buf: []byte{byte(i)}, Addr: self}
	}
	return b
}

// TestNoFaults holds "k itself where in is nil".
func TestNoFaults(t *testing.T) {
	t.Parallel()
	k := memsys.New().Backend().Kernel
	if got := sys.WithFaults(k, nil); got != k {
		t.Errorf("%T", got)
	}
}

// TestFaultsCoverTheContract calls each method of the contract by its name: the Call of that name is asked about,
// with the descriptor, and its errno answered.
func TestFaultsCoverTheContract(t *testing.T) {
	t.Parallel()
	named := map[string]fault.Call{
		"Socket": fault.Socket, "Bind": fault.Bind, "Connect": fault.Connect, "LocalAddr": fault.LocalAddr,
		"RemoteAddr": fault.RemoteAddr, "Describe": fault.Describe, "Duplicate": fault.Duplicate, "Close": fault.Close,
		"Recv": fault.Recv, "Send": fault.Send, "RecvErrors": fault.RecvErrors, "SetOption": fault.SetOption,
		"GetOption": fault.GetOption, "MemInfo": fault.MemInfo, "BindToDevice": fault.BindToDevice,
		"Membership": fault.Membership,

		"Unblock": fault.Unblock, "Listen": fault.Listen, "Accept": fault.Accept, "Read": fault.Read,
		"Write": fault.Write, "SendFile": fault.SendFile, "CloseWrite": fault.CloseWrite, "Info": fault.Info,

		"BindUnix": fault.Bind, "ConnectUnix": fault.Connect, "LocalUnix": fault.LocalAddr,
		"RemoteUnix": fault.RemoteAddr, "UnlinkUnix": fault.Unlink, "SendUnix": fault.Send, "RecvUnix": fault.Recv,
		"WriteFiles": fault.WriteFiles, "ReadFiles": fault.ReadFiles,
	}
	contract := reflect.TypeFor[sys.Kernel]()
	for m := range contract.Methods() {
		call, ok := named[m.Name]
		if !ok {
			if m.Name != "Unbatched" {
				t.Errorf("%s: no plan can hit it", m.Name)
			}
			continue
		}
		k, fd, in := faulty(t, call.String()+"=EXDEV", 1)
		if call != fault.Socket && call != fault.Unlink {
			k, fd, in = faulty(t, call.String()+"@fd3=EXDEV", 1) // the first descriptor of the network
		}
		var args []reflect.Value
		for j := range m.Type.NumIn() {
			switch in := m.Type.In(j); {
			case in == reflect.TypeFor[*sys.RecvBatch]():
				args = append(args, reflect.ValueOf(sys.NewRecvBatch(1, 8)))
			case in == reflect.TypeFor[*sys.Files]():
				args = append(args, reflect.ValueOf(sys.NewFiles(1)))
			case in.Kind() == reflect.Int && j == 0:
				args = append(args, reflect.ValueOf(fd))
			default:
				args = append(args, reflect.Zero(in))
			}
		}
		out := reflect.ValueOf(k).MethodByName(m.Name).Call(args)
		if err := out[len(out)-1].Interface(); err != syscall.EXDEV {
			t.Errorf("%s answers %v, want %v", m.Name, err, syscall.EXDEV)
		}
		if in.Calls()[call] != 1 {
			t.Errorf("%s: seen calls are %v", m.Name, in.Calls())
		}
	}
	if len(named) != contract.NumMethod()-1 {
		t.Errorf("%d calls for %d methods", len(named), contract.NumMethod())
	}
}

// TestFaultCloses holds "Close is made anyway".
func TestFaultCloses(t *testing.T) {
	t.Parallel()
	k, fd, _ := faulty(t, "close#1=EIO", 0)
	if err := k.Close(fd); err != syscall.EIO {
		t.Errorf("the first close answers %v", err)
	}
	if err := k.Close(fd); err != syscall.EBADF {
		t.Errorf("the second close answers %v", err)
	}
}

// TestFaultNotMade holds "one with an errno is not made": nothing leaves the queue, nothing enters it.
func TestFaultNotMade(t *testing.T) {
	t.Parallel()
	k, fd, _ := faulty(t, "recv#1=ENOMEM; send#1=EPERM; recv#2=EINTR", 2)
	b := sys.NewRecvBatch(4, 8)
	if n, err := k.Recv(fd, b, 4); n != 0 || err != syscall.ENOMEM {
		t.Errorf("receives %d, %v", n, err)
	}
	out := toSelf(t, k, fd, 1)
	if n, err := k.Send(fd, out, 0, 1); n != 0 || err != syscall.EPERM {
		t.Errorf("sends %d, %v", n, err)
	}
	if n, err := k.Recv(fd, b, 4); n != 2 || err != nil { // "an EINTR has no effect"
		t.Errorf("receives %d, %v; want 2", n, err)
	}
}

func TestFaultShort(t *testing.T) {
	t.Parallel()
	k, fd, _ := faulty(t, "recv=short:2; send=short:3", 0)
	b, out := sys.NewRecvBatch(4, 8), toSelf(t, k, fd, 5)
	for _, want := range []int{3, 1} {
		if n, err := k.Send(fd, out, 5-want-1, 4); n != min(want, 3) || err != nil {
			t.Errorf("sends %d, %v; want %d", n, err, want)
		}
	}
	for _, c := range []struct{ ask, want int }{{4, 2}, {1, 1}, {4, 1}} {
		if n, err := k.Recv(fd, b, c.ask); n != c.want || err != nil {
			t.Errorf("receives %d, %v; want %d", n, err, c.want)
		}
	}
}

// TestFaultDrop holds "a send says that it has sent, and has not; a receive takes what there is, throws it away,
// and answers EAGAIN", and counts trains in datagrams.
func TestFaultDrop(t *testing.T) {
	t.Parallel()
	k, fd, in := faulty(t, "send#1=drop; recv#1x2=drop", 3)
	out := toSelf(t, k, fd, 2)
	out.Msgs[1].Buf = make([]byte, 10)
	out.Msgs[1].Control.Segment = 4
	if n, err := k.Send(fd, out, 0, 2); n != 2 || err != nil {
		t.Errorf("sends %d, %v", n, err)
	}
	if got := in.Dropped(); got != 1+3 {
		t.Errorf("%d datagrams dropped, want 4", got)
	}
	for range 2 { // the second finds nothing
		if n, err := k.Recv(fd, sys.NewRecvBatch(4, 8), 4); n != 0 || err != syscall.EAGAIN {
			t.Errorf("receives %d, %v", n, err)
		}
	}
	if got := in.Dropped(); got != 4+3 {
		t.Errorf("%d datagrams dropped, want 7", got)
	}
}

// TestFaultDelay: the delay comes first, with the call or its errno behind it.
func TestFaultDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, fd, _ := faulty(t, "recv#1=delay:3s; recv#2=delay:2s+EPERM", 1)
		b := sys.NewRecvBatch(4, 8)
		for _, want := range []struct {
			n    int
			err  error
			took time.Duration
		}{{1, nil, 3 * time.Second}, {0, syscall.EPERM, 2 * time.Second}, {0, syscall.EAGAIN, 0}} {
			start := time.Now()
			n, err := k.Recv(fd, b, 4)
			if took := time.Since(start); n != want.n || !errors.Is(err, want.err) || took != want.took {
				t.Errorf("receives %d, %v in %v; want %v", n, err, took, want)
			}
		}
	})
}
