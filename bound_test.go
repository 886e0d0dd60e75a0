package weir

import (
	"strings"
	"testing"
)

func TestBoundText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Bound{
		"share": Share(), "unbounded": Unbounded(), "count:1": Count(1), "count:32": Count(32),
		"count:2147483647": Count(2147483647),
	} {
		got, err := ParseBound(text)
		if err != nil || got != want {
			t.Errorf("ParseBound(%q) = %v, %v; want %v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
	for _, text := range []string{
		"", "default", "Share", " share", "count", "count:", "count:0", "count:-1", "count:x", "count:1.5",
		"count:99999999999999999999", "counts:3", "unbounded:1",
	} {
		b, err := ParseBound(text)
		if err == nil || b != (Bound{}) || !strings.Contains(err.Error(), text) {
			t.Errorf("ParseBound(%q) = %v, %v; want an error with the text", text, b, err)
		}
	}
}

// TestBoundDefault holds "the zero Bound stands for the default of where it is used: the loop's for a
// socket, Share for a loop".
func TestBoundDefault(t *testing.T) {
	for _, row := range []struct{ name, loop, socket, want string }{
		{"none", "", "", "share"},
		{"the loop's", "count:7", "", "count:7"},
		{"the socket's", "count:7", "unbounded", "unbounded"},
		{"the socket's share", "unbounded", "share", "share"},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				parse := func(s string) (b Bound) {
					if s != "" {
						var err error
						if b, err = ParseBound(s); err != nil {
							t.Fatal(err)
						}
					}
					return b
				}
				l := newLoop(t, Config{Kernel: k, Bound: parse(row.loop)})
				if u := listen(t, l, parse(row.socket), nil); u.limits.bound.String() != row.want {
					t.Errorf("the socket's bound is %v, want %s", u.limits.bound, row.want)
				}
			})
		})
	}
	for _, bad := range []Bound{Count(0), Count(-1)} {
		if l, err := New(Config{Bound: bad}); err == nil || l != nil || !strings.Contains(err.Error(), bad.String()[len("count:"):]) {
			t.Errorf("New with %v: %v", bad, err)
		}
	}
}
