package memsys_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// small is a pair of which one direction takes 5000 bytes at the receiver, and 20000 at the sender.
func (h *host) small() (from, to int) {
	from, to = h.pair()
	h.set(to, sys.RecvBuffer, 5000)
	h.set(from, sys.SendBuffer, 10_000)
	return from, to
}

// drain reads n bytes.
func (h *host) drain(fd, n int) {
	h.Helper()
	for n > 0 {
		got, err := h.read(fd, n)
		h.must(err)
		n -= len(got)
	}
}

func TestWritableAtAThird(t *testing.T) {
	h := newHost(t)
	from, to := h.small()
	if total := h.fill(from); total != 25_000 {
		t.Fatalf("%d bytes fit", total)
	}
	h.isReady(from, "")
	h.drain(to, 6666)
	h.isReady(from, "")
	h.writes(from, "x")
	h.drain(to, 2)
	h.isReady(from, "W")
	if info, err := h.k.Info(from); info.NotSentBytes != 13_333 || info.BytesAcked != 25_001-13_333 || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := h.k.Info(to); info.BytesReceived != 25_001-13_333 || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestNotSentLowAt(t *testing.T) {
	h := newHost(t)
	from, to := h.small()
	h.set(from, sys.NotSentLowAt, 1000)
	if total := h.fill(from); total != 6000 {
		t.Fatalf("%d bytes fit", total)
	}
	h.drain(to, 500)
	h.isReady(from, "")
	h.drain(to, 1)
	h.isReady(from, "W")
}

// TestEndBehindAWindow: the end of a stream comes behind all bytes, and a reset does not wait for those that the
// receiver has no room for.
func TestEndBehindAWindow(t *testing.T) {
	h := newHost(t)
	from, to := h.small()
	h.fill(from)
	h.must(h.k.CloseWrite(from))
	h.must(h.k.CloseWrite(to))
	h.isReady(to, "RW")
	h.drain(to, 25_000)
	h.isReady(to, "RWH")
	h.reads(to, "", nil)

	from, to = h.small()
	h.fill(from)
	h.must(h.k.Close(from))
	h.writes(to, "x")
	h.isReady(to, "RWFH")
	if info, err := h.k.Info(to); info.BytesReceived != 5000 || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
	h.drain(to, 5000)
	if info, err := h.k.Info(to); info.BytesReceived != 5000 || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
	h.reads(to, "", syscall.ECONNRESET)
	h.reads(to, "", nil)
}

func TestBlockedAndLimitedWrites(t *testing.T) {
	h := newHost(t)
	from, to := h.pair()
	h.must(h.BlockSends(from, true))
	h.refuses(from, syscall.EAGAIN)
	h.isReady(from, "")
	h.must(h.BlockSends(from, false))
	h.must(h.LimitWrites(from, 3))
	v := sys.NewVector(3)
	v.Bufs = append(v.Bufs, []byte("ab"), []byte("cd"), []byte("ef"))
	n, err := h.k.Write(from, v, true)
	if n != 3 || err != nil {
		t.Fatalf("Write answers %d, %v", n, err)
	}
	h.reads(to, "abc", nil)
}

func TestStreamsDoNotAllocate(t *testing.T) {
	h := newHost(t)
	from, to := h.pair()
	v := sys.NewVector(2)
	v.Bufs = append(v.Bufs, make([]byte, 1000), make([]byte, 2000))
	b := make([]byte, 3000)
	once := func() {
		if n, err := h.k.Write(from, v, false); n != 3000 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := h.k.Read(to, b); n != 3000 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestBytesStayInOrder(t *testing.T) {
	h := newHost(t)
	from, to := h.pair()
	var sent, got strings.Builder
	for i := range 3000 {
		text := strings.Repeat(string(rune('a'+i%26)), 1+i%997)
		h.writes(from, text)
		sent.WriteString(text)
		part, err := h.read(to, 1+i%991)
		h.must(err)
		got.WriteString(part)
	}
	h.must(h.k.Close(from))
	for {
		part, err := h.read(to, 5000)
		h.must(err)
		if part == "" {
			break
		}
		got.WriteString(part)
	}
	if sent.String() != got.String() {
		t.Error("not what was sent")
	}
}

func TestSendFile(t *testing.T) {
	h := newHost(t)
	from, to := h.small()
	content := strings.Repeat("0123456789", 5000)
	name := filepath.Join(t.TempDir(), "file")
	h.must(os.WriteFile(name, []byte(content), 0o600))
	f, err := os.Open(name)
	h.must(err)
	defer f.Close()
	send := func(offset int64, n, want int, wantErr error) {
		t.Helper()
		if got, err := h.k.SendFile(from, f, offset, n, false); got != want || err != wantErr {
			t.Fatalf("SendFile of %d at %d answers %d, %v; want %d, %v", n, offset, got, err, want, wantErr)
		}
	}
	send(7, 5, 5, nil)
	h.reads(to, "78901", nil)
	send(int64(len(content))-3, 100, 3, nil)
	send(int64(len(content)), 100, 0, nil)
	send(0, 100_000, 24_997, nil)
	send(0, 1, 0, syscall.EAGAIN)
	send(int64(len(content)), 1, 0, nil)
	send(-1, 1, 0, syscall.EINVAL)
	got, err := h.read(to, 5000)
	if got != "789"+content[:4997] || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if at, err := f.Seek(0, io.SeekCurrent); at != 0 || err != nil {
		t.Errorf("the file is at %d, %v", at, err)
	}
	r, w, err := os.Pipe()
	h.must(err)
	defer r.Close()
	defer w.Close()
	f = r
	h.drain(to, 15_000)
	send(0, 1, 0, syscall.EINVAL)
}
