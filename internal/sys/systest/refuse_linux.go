//go:build linux

package systest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refuseEnv asks a test program to put itself under a filter and start again: "recvmmsg,sendmmsg ENOSYS".
const refuseEnv = "WEIR_TEST_REFUSE"

// refusedEnv tells a test program that it runs under one.
const refusedEnv = "WEIR_TEST_REFUSED"

// Refusals are the filters that forbid batched calls, as sandboxes have them.
func Refusals() []string {
	var specs []string
	for _, calls := range []string{"recvmmsg", "sendmmsg", "recvmmsg,sendmmsg"} {
		for _, errno := range []string{"ENOSYS", "EPERM"} {
			specs = append(specs, calls+" "+errno)
		}
	}
	return specs
}

// RunRefused runs the program's test of the given name in a process of its own, under a seccomp filter, and
// returns what it printed. The test finds out by Refused that it is that process.
func RunRefused(t *testing.T, test, spec string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), refuseEnv+"="+spec)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", spec, err, out)
	}
	return string(out)
}

// Refused tells that the program runs under a filter.
func Refused() bool { return os.Getenv(refusedEnv) != "" }

// RefuseIfAsked is for TestMain: in a process that RunRefused started it installs the filter, and becomes the
// program again, so that every thread is under it.
func RefuseIfAsked() error {
	spec := os.Getenv(refuseEnv)
	if spec == "" {
		return nil
	}
	if err := os.Unsetenv(refuseEnv); err != nil {
		return err
	}
	runtime.LockOSThread() // the filter is the thread's, and stays with it through exec
	if err := refuse(spec); err != nil {
		return fmt.Errorf("seccomp filter %q: %w", spec, err)
	}
	return syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), refusedEnv+"="+spec))
}

func refuse(spec string) error {
	calls, name, _ := strings.Cut(spec, " ")
	errno := map[string]unix.Errno{"ENOSYS": unix.ENOSYS, "EPERM": unix.EPERM}[name]
	numbers := map[string]uint32{"recvmmsg": unix.SYS_RECVMMSG, "sendmmsg": unix.SYS_SENDMMSG, "sendmsg": unix.SYS_SENDMSG}
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // seccomp_data.nr
	for call := range strings.SplitSeq(calls, ",") {
		if call == "none" {
			continue
		}
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: numbers[call], Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}
