package weirtls

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/fault"
)

// oraclePlans are what happens to the calls of the loop, by how the streams are cut.
var oraclePlans = map[string]struct {
	plan string
	most int // bytes of a script
}{
	"whole":        {"", 1 << 20},
	"at random":    {"read%0.3=short:977; write%0.3=short:101", 300_000},
	"byte by byte": {"read=short:1; write=short:1", 20_000},
}

// TestOracle has the same scripts run with weirtls at one end, and with the standard library at both, which is the
// oracle: both ends have the same story.
func TestOracle(t *testing.T) {
	for _, role := range []Role{AsServer, AsClient} {
		for _, version := range versions {
			for _, c := range cuts {
				t.Run(fmt.Sprintf("%v %s %s", role, versionName(version), c.name), func(t *testing.T) {
					plan, err := fault.Parse(oraclePlans[c.name].plan)
					if err != nil {
						t.Fatal(err)
					}
					onEachKernel(t, weir.Config{Faults: plan}, func(t *testing.T, p *place) {
						seed := rand.Uint64()
						script := newScript(seed, oraclePlans[c.name].most, version == tls.VersionTLS13)
						defer func() {
							if t.Failed() {
								t.Logf("seed %d", seed)
							}
						}()
						how := c.how
						if p.joins(c.name) {
							how = cuts[0].how // the plan cuts, and exactly
						}
						run := func(weirs Role) (server, client *story) {
							return p.converse(weirs, serverTLS(version), clientTLS(version), weir.ConnConfig{WriteBufferBytes: 100_000},
								program{echo: true}, script, how(seed), how(seed+1))
						}
						server, client := run(role)
						wantServer, wantClient := run(0)
						sameStory(t, "server", server, wantServer)
						sameStory(t, "client", client, wantClient)
					})
				})
			}
		}
	}
}

func sameStory(t *testing.T, who string, got, want *story) {
	t.Helper()
	if g, w := got.summary(), want.summary(); g != w || !bytes.Equal(got.data, want.data) {
		t.Errorf("%s; the story:\n%s\n%v\nthe oracle's:\n%s\nthe bytes are the same: %v", who, g, got.err, w, bytes.Equal(got.data, want.data))
	}
}

// newScript writes so much at most, in pieces of all sizes. Over TLS 1.3 it may end its direction.
func newScript(seed uint64, most int, half bool) (p program) {
	r := rand.New(rand.NewPCG(seed, 1))
	sizes := []int{0, 1, 16 << 10, 100 << 10, 16<<10 + 1, 0, 1}
	r.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
	for range r.IntN(20) {
		sizes = append(sizes, r.IntN(1<<r.IntN(18)))
	}
	for _, size := range sizes {
		size = min(size, most-p.closeAt)
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		p.writes = append(p.writes, b)
		p.closeAt += size
	}
	if half && r.IntN(2) == 0 {
		p.half, p.closeAt = true, 0
	}
	return p
}
