package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// TestMain also is the weir command, and the ones that the scripts confine it with.
func TestMain(m *testing.M) {
	commands := confinements()
	commands["weir"] = main
	testscript.Main(tidy{m}, commands)
}

// tidy fails where tests left goroutines or descriptors behind.
type tidy struct{ *testing.M }

func (m tidy) Run() int {
	before := descriptors()
	if code := m.M.Run(); code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if after := descriptors(); !slices.Equal(before, after) {
		fmt.Fprintf(os.Stderr, "descriptors before the tests %q, after %q\n", before, after)
		return 1
	}
	return 0
}

// descriptors lists the sockets and pipes that are open, where the system tells.
func descriptors() []string {
	var open []string
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "pipe:") {
			open = append(open, to)
		}
	}
	slices.Sort(open)
	return open
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0") // with -race, else a second for each command
			env.Values[stalled{}] = new(io.ReadCloser)
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"diagnosis": scriptDiagnosis,
			"exits":     scriptExits,
			"fetch":     scriptFetch,
			"figure":    scriptFigure,
			"finding":   scriptFinding,
			"finish":    scriptFinish,
			"lines":     scriptLines,
			"refused":   scriptRefused,
			"stall":     scriptStall,
			"taken":     scriptTaken,
		},
	})
}

// condition knows "demo": the loop works on this system.
func condition(name string) (bool, error) {
	switch name {
	case "demo":
		return runtime.GOOS == "linux", nil
	case "seccomp":
		return seccompWorks(), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}
