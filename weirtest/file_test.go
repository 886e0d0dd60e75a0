package weirtest

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/internal/sys"
)

// sending is a scenario: a server that sends a file and a few bytes behind it, and a client that hands its connection
// over as soon as it is there, to itself.
type sending struct {
	file *os.File
	size int

	patient bool // a fault may leave connections waiting
}

// sendRun is a sending on a loop.
type sendRun struct {
	sending
	l        *weir.Loop
	k        sys.Kernel
	server   *streamEnd
	client   *streamEnd // the first connection: it only hands over
	adopted  *streamEnd
	unserved bool
	lent     int   // files that SendFile took
	dones    int   // calls of done
	doneErr  error // what the last one heard
	handover error
}

func (s sending) setup(l *weir.Loop, k sys.Kernel) (func(error) error, error) {
	r := &sendRun{sending: s, l: l, k: k, server: &streamEnd{}, client: &streamEnd{}, adopted: &streamEnd{}}
	ln, err := l.ListenTCP(loopback, weir.ListenerConfig{}, weir.ListenerHandler{
		OnError: func(*weir.Listener, error) { r.unserved = true },
		OnClose: func(_ *weir.Listener, err error) { r.unserved = r.unserved || err != nil },
		Conn: weir.ConnHandler{
			OnOpen:  r.send,
			OnClose: func(_ *weir.Conn, err error) { r.server.closed(err) },
		},
	})
	if err != nil {
		return nil, err
	}
	_, err = l.DialTCP(netip.AddrPort{}, ln.Addr(), weir.ConnConfig{}, weir.ConnHandler{
		OnOpen:  func(c *weir.Conn) { r.client.opened = true; r.handover = r.handOver(c) },
		OnClose: func(_ *weir.Conn, err error) { r.client.closed(err) },
	})
	return r.check, err
}

// send sends the file, and the rest of the tape behind it.
func (r *sendRun) send(c *weir.Conn) {
	r.server.opened = true
	if c.SendFile(r.file, 0, int64(r.size), func(err error) { r.dones++; r.doneErr = err }) != nil {
		return
	}
	r.lent++
	r.server.took = r.size
	if n, err := c.Write(r.server.tape.cut(r.size, 500)); err == nil {
		r.server.took += n
	}
	_ = c.CloseWrite()
}

// handOver closes a connection and goes on with a descriptor of it.
func (r *sendRun) handOver(c *weir.Conn) error {
	c.Pause()
	fd, err := c.Export()
	if err != nil {
		return err
	}
	defer r.k.Close(fd)
	if err := c.Close(); err != nil {
		return err
	}
	_, err = r.l.AdoptConn(fd, weir.ConnConfig{}, weir.ConnHandler{
		OnOpen:  func(*weir.Conn) { r.adopted.opened = true },
		OnData:  func(_ *weir.Conn, b []byte) { r.adopted.read(b) },
		OnEnd:   func(c *weir.Conn) { r.adopted.ended = true; _ = c.CloseWrite() },
		OnClose: func(_ *weir.Conn, err error) { r.adopted.closed(err) },
	})
	return err
}

func (r *sendRun) check(ended error) error {
	told := ended != nil || r.unserved || r.handover != nil
	for _, e := range []*streamEnd{r.server, r.client, r.adopted} {
		told = told || e.closeErr != nil
		if e.opened && e.closes != 1 {
			return fmt.Errorf("OnClose was called %d times", e.closes)
		}
	}
	if r.dones != r.lent {
		return fmt.Errorf("done was called %d times for %d files", r.dones, r.lent)
	}
	if r.patient && !r.adopted.ended {
		return r.adopted.wrong // the end of the loop found it waiting
	}
	if (r.doneErr != nil || r.adopted.got != r.server.took || !r.adopted.ended) && !told {
		return fmt.Errorf("%d bytes of %d came, done heard %w, and nobody was told", r.adopted.got, r.server.took, r.doneErr)
	}
	return r.adopted.wrong
}

// TestSweepFile sends a file over a connection that is handed over, with each call failing: all of it comes, or an end
// is told why not, and the file is given back once.
func TestSweepFile(t *testing.T) {
	const size = 300_000
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, tape(0).cut(0, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range sweepRows() {
		t.Run(c.name, func(t *testing.T) {
			sweepSome(t, Scenario{Machine: c.machine, Lasting: c.lasting, MaxQuietCalls: 400}, sending{f, size, c.machine || c.lasting}.setup)
		})
	}
}
