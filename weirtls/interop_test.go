package weirtls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

// command is a program of this machine that is talked to.
type command struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{}
	seen  int // of what it said, by wait

	mu   sync.Mutex
	said bytes.Buffer // guarded by mu; both of its outputs
}

// need skips the test where a tool is missing.
func need(t *testing.T, tool string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("interoperation with %s is not tested: %v", tool, err)
	}
}

// start has the command end with the test.
func start(t *testing.T, name string, args ...string) *command {
	t.Helper()
	c := &command{t: t, cmd: exec.CommandContext(t.Context(), name, args...), ended: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = c, c
	c.cmd.WaitDelay = time.Second
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = c.stdin.Close()
		<-c.ended
	})
	return c
}

// Write is what the command says.
func (c *command) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.Write(b)
}

// all is what it has said so far.
func (c *command) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.String()
}

func (c *command) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		c.t.Errorf("%v; it said:\n%s", err, c.all())
	}
}

// wait waits until the command has said this, behind what was waited for before, and returns the rest of that line.
func (c *command) wait(text string) (rest string) {
	c.t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		over := time.Since(begin) > patience
		select {
		case <-c.ended:
			over = true
		default:
		}
		all := c.all()
		if _, after, ok := strings.Cut(all[c.seen:], text); ok {
			rest, _, whole := strings.Cut(after, "\n")
			if whole || over {
				c.seen = len(all) - len(after)
				return rest
			}
		}
		if over {
			c.t.Fatalf("%v has not said %q, but:\n%s", c.cmd.Args[:2], text, all[max(len(all)-4000, 0):])
		}
	}
}

// finish waits for its end, and tells all that it said.
func (c *command) finish() string {
	<-c.ended
	return c.all()
}

// pemFiles are the certificates as tools take them: names of files, with the keys.
type pemFiles struct{ ca, server, other, client, stranger string }

func writePEM(t *testing.T) pemFiles {
	t.Helper()
	dir, p := t.TempDir(), certificates()
	file := func(name string, key any, chain ...[]byte) string {
		var b bytes.Buffer
		for _, der := range chain {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der})
		}
		if key != nil {
			der, err := x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				t.Fatal(err)
			}
			_ = pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
		}
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	own := func(name string, c tls.Certificate) string { return file(name, c.PrivateKey, c.Certificate...) }
	return pemFiles{
		ca: file("ca", nil, p.authority.Raw), server: own("server", p.server), other: own("other", p.other),
		client: own("client", p.client), stranger: own("stranger", p.stranger),
	}
}

// overNet is a server at an address, weirtls or the standard library, for one connection.
func (p *place) overNet(weirs bool, cfg *tls.Config, what program) (at netip.AddrPort, end func() *story) {
	p.t.Helper()
	if weirs {
		a := newActor(what)
		return p.serve(Config{TLS: cfg}, weir.ConnConfig{}, a.handler()), func() *story { return <-a.over }
	}
	at, accept := p.listen()
	over := make(chan *story, 1)
	go func() { over <- runStd(stdConn(AsServer, accept(), cfg), what) }()
	return at, func() *story { return <-over }
}

// toNet is a client of an address.
func (p *place) toNet(weirs bool, at netip.AddrPort, cfg *tls.Config, what program) (end func() *story) {
	p.t.Helper()
	if weirs {
		a := newActor(what)
		p.call(at, Config{TLS: cfg}, weir.ConnConfig{}, a.handler())
		return func() *story { return <-a.over }
	}
	over := make(chan *story, 1)
	c := stdConn(AsClient, p.dial(at), cfg)
	go func() { over <- runStd(c, what) }()
	return func() *story { return <-over }
}
