//go:build linux

package systest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// namespaceEnv names the test for which a test program runs in a network namespace of its own.
const namespaceEnv = "WEIR_TEST_NAMESPACE"

// InNamespace runs the calling test in a process of its own, in a new network namespace whose only interface is a
// loopback that is up, and tells the test that it is there. In the first process it answers false when that has
// ended, and the test has nothing left to do. Who is not root gets a user namespace, too, where the system allows
// that; else the test is skipped.
func InNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaceEnv) == t.Name() {
		Configure(t, "ip link set lo up")
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), namespaceEnv+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Skip("no network namespace: ", err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()+" "):
		t.Skipf("%s", out)
	}
	return false
}

// Configure runs commands, each in a line: ip, tc or nft, which the test needs.
func Configure(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		args := strings.Fields(line)
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		switch {
		case errors.Is(err, exec.ErrNotFound):
			t.Skip(err)
		case err != nil:
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
}
