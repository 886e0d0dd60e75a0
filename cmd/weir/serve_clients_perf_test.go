//go:build perf

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// clientSizes are around what fits in a datagram, and more than any window.
var clientSizes = []int64{0, 1, 1199, 1200, 1201, 10_000_000, 1_000_000_000}

// TestSoakClients has programs that others wrote get files from the real command: curl by HTTP/1.1 and 2, Bun and
// Chromium by HTTP/3. All bytes arrive.
func TestSoakClients(t *testing.T) {
	site, sums := newClientSite(t)
	s := startServe(t, site)
	byTCP, byHTTP3 := 0, 0
	t.Run("curl", func(t *testing.T) {
		curl := program(t, "WEIR_CURL", "curl")
		byTCP = len(clientSizes)
		for _, version := range []string{"1.1", "2"} {
			for _, size := range clientSizes {
				out := runClient(t, "", curl, "-sSf", "--http"+version, "--cacert", s.cert, "-w", "%{stderr}%{http_version}", s.url+name(size))
				if out.sum != sums[size] || out.stderr != version {
					t.Errorf("HTTP/%s, %d bytes: %d bytes came, by HTTP/%s", version, size, out.bytes, out.stderr)
				}
			}
		}
	})
	t.Run("bun", func(t *testing.T) {
		bun := program(t, "WEIR_BUN", "bun")
		byHTTP3 = len(clientSizes)
		for _, size := range clientSizes {
			out := runClient(t, bunGet, bun, "run", "-", s.url+name(size))
			if out.sum != sums[size] {
				t.Errorf("%d bytes: %d bytes came: %s", size, out.bytes, out.stderr)
			}
		}
	})
	t.Run("chromium", func(t *testing.T) { seeInChromium(t, s, sums) })
	log := s.stop(t)
	for proto, want := range map[string]int{"HTTP/1.1": byTCP, "HTTP/2.0": byTCP, "HTTP/3.0": byHTTP3} {
		if n := strings.Count(log, " "+proto+" GET /"); n < want {
			t.Errorf("%d requests by %s, want %d", n, proto, want)
		}
	}
	t.Logf("%s", s.stderr.String())
}

// bunGet is a program for Bun that gets the URL by HTTP/3 and nothing else.
const bunGet = `
const url = process.argv.at(-1);
const r = await fetch(url, { protocol: "http3", tls: { rejectUnauthorized: false } });
if (!r.ok) throw new Error("status " + r.status);
const out = Bun.stdout.writer();
for await (const part of r.body ?? []) { out.write(part); await out.flush(); }
await out.end();
`

// chromiumPage tells by which protocol it came, gets files, and tells their sums.
const chromiumPage = `<!DOCTYPE html>
<title>weir</title>
<pre id="out">working</pre>
<script>
(async () => {
  let text = "";
  try {
    text += "page " + performance.getEntriesByType("navigation")[0].nextHopProtocol + "\n";
    for (const size of %s) {
      const url = new URL("/" + size + ".bin", location);
      const body = await (await fetch(url)).arrayBuffer();
      const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
      const proto = performance.getEntriesByName(url.href)[0].nextHopProtocol;
      text += size + " " + proto + " " + Array.from(sum, b => b.toString(16).padStart(2, "0")).join("") + "\n";
    }
  } catch (e) { text += e; }
  document.getElementById("out").textContent = text;
})();
</script>
`

// chromiumSizes are those that a page has memory for.
func chromiumSizes() []int64 { return clientSizes[:len(clientSizes)-1] }

func seeInChromium(t *testing.T, s *serving, sums map[int64]string) {
	chromium := program(t, "WEIR_CHROMIUM", "chromium")
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
		"--enable-quic", "--origin-to-force-quic-on="+u.Host, "--ignore-certificate-errors-spki-list="+s.spki,
		"--virtual-time-budget=60000", "--dump-dom", s.url+"/page.html")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	want := []string{"page h3"}
	for _, size := range chromiumSizes() {
		want = append(want, fmt.Sprintf("%d h3 %s", size, sums[size]))
	}
	for _, line := range want {
		if !strings.Contains(string(out), line+"\n") {
			t.Errorf("not in the page: %s", line)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", out, stderr.Bytes())
	}
}

func name(size int64) string { return fmt.Sprintf("/%d.bin", size) }

// newClientSite makes the files, and returns their sums by size.
func newClientSite(t *testing.T) (dir string, sums map[int64]string) {
	t.Helper()
	dir, sums = t.TempDir(), map[int64]string{}
	for _, size := range clientSizes {
		f, err := os.Create(filepath.Join(dir, name(size)))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		_, err = io.CopyN(io.MultiWriter(f, sum), rand.NewChaCha8([32]byte{byte(size)}), size)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		sums[size] = hex.EncodeToString(sum.Sum(nil))
	}
	sizes := strings.Join(strings.Fields(fmt.Sprint(chromiumSizes())), ",")
	put(t, filepath.Join(dir, "page.html"), fmt.Sprintf(chromiumPage, sizes))
	return dir, sums
}

// program is where the client is, by a variable of the environment or in PATH. Without it the test is skipped.
func program(t *testing.T, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%v; %s may tell where it is", err, variable)
	}
	return path
}

// received is what a client wrote.
type received struct {
	bytes  int64
	sum    string
	stderr string
}

func runClient(t *testing.T, stdin, program string, args ...string) (out received) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	sum, count := sha256.New(), &counted{}
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), io.MultiWriter(sum, count), &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v: %s", program, err, stderr.Bytes())
	}
	return received{count.n, hex.EncodeToString(sum.Sum(nil)), stderr.String()}
}

type counted struct{ n int64 }

func (c *counted) Write(b []byte) (int, error) { c.n += int64(len(b)); return len(b), nil }

// serving is a weir serve of its own process.
type serving struct {
	cmd             *exec.Cmd
	url, spki, cert string
	stdout, stderr  bytes.Buffer
	read            chan struct{} // closed at the end of its stderr
}

var startLines = regexp.MustCompile(`(?s) on (https://\S+) .*certificate in (\S+), .* SPKI (\S+)\n`)

func startServe(t *testing.T, dir string, flags ...string) *serving {
	t.Helper()
	s := &serving{cmd: exec.Command("weir", append([]string{"serve", dir, "--addr", "localhost:0"}, flags...)...), read: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	s.cmd.Stdout = &s.stdout
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() }) // where the test did not come to its end
	lines := bufio.NewReader(stderr)
	var m []string
	for m == nil {
		line, err := lines.ReadString('\n')
		s.stderr.WriteString(line)
		if err != nil {
			t.Fatalf("it ended: %s", s.stderr.String())
		}
		m = startLines.FindStringSubmatch(s.stderr.String())
	}
	s.url, s.cert, s.spki = m[1], m[2], m[3]
	go func() {
		defer close(s.read)
		_, _ = io.Copy(&s.stderr, lines)
	}()
	return s
}

// stop ends it, and returns its log.
func (s *serving) stop(t *testing.T) string {
	t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-s.read
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, s.stderr.String())
	}
	return s.stdout.String()
}
