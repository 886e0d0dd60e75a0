//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confinements are programs for the scripts, each running another under a condition.
func confinements() map[string]func() {
	return map[string]func(){
		"limited":      func() { fail(limited(os.Args[1:])) },
		"forbidden":    func() { fail(forbidden(os.Args[1:])) },
		"signalled":    func() { fail(signalled(os.Args[1:])) },
		"unprivileged": func() { fail(unprivileged(os.Args[1:])) },
	}
}

// fail ends a program that could not do its part, with an exit code that no test expects.
func fail(err error) {
	fmt.Fprintln(os.Stderr, os.Args[0]+":", err)
	os.Exit(99)
}

// limited is "limited N command…": the command may open N descriptors.
func limited(args []string) error {
	n, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		return err
	}
	return become(args[1:])
}

// unprivileged is "unprivileged command…": the command may read what its user may read, though it be root.
func unprivileged(args []string) error {
	runtime.LockOSThread() // what may be had is the thread's, and stays with it when it becomes the command
	if os.Geteuid() == 0 {
		for _, c := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				return err
			}
		}
	}
	return become(args)
}

// forbidden is "forbidden calls command…": the command's system calls of these names are refused, with EACCES or,
// where a name is followed by it, as in recvmmsg=EPERM,sendmmsg=EPERM, another errno.
func forbidden(args []string) error {
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // seccomp_data.nr
	for word := range strings.SplitSeq(args[0], ",") {
		call, name, _ := strings.Cut(word, "=")
		number, known := callNumbers()[call]
		errno, also := map[string]unix.Errno{"": unix.EACCES, "EPERM": unix.EPERM, "ENOSYS": unix.ENOSYS}[name]
		if !known || !also {
			return fmt.Errorf("%s cannot be forbidden", word)
		}
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	runtime.LockOSThread() // the filter is the thread's, and stays with it when it becomes the command
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return err
	}
	return become(args[1:])
}

func callNumbers() map[string]uint32 {
	return map[string]uint32{
		"bind": unix.SYS_BIND, "epoll_pwait2": unix.SYS_EPOLL_PWAIT2,
		"getsockopt": unix.SYS_GETSOCKOPT, "listen": unix.SYS_LISTEN,
		"recvmmsg": unix.SYS_RECVMMSG, "recvmsg": unix.SYS_RECVMSG, "sendfile": unix.SYS_SENDFILE,
		"sendmmsg": unix.SYS_SENDMMSG, "sendmsg": unix.SYS_SENDMSG, "setsockopt": unix.SYS_SETSOCKOPT,
		"socket": unix.SYS_SOCKET,
	}
}

// seccompWorks tries it: containers may forbid it, and some architectures have bind elsewhere.
func seccompWorks() bool {
	return runtime.GOARCH != "386" && exec.Command("forbidden", "bind", "true").Run() == nil
}

func become(args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, args, os.Environ())
}

// signalled is "signalled signals delay pattern command…": when a line that the command writes to stderr
// matches, and after the delay, it gets the signals, one letter each (I, T, K), 100 ms apart; C kills its
// children instead. The exit code is the command's, or 100 and the signal's number if one killed it. It waits for
// all that the command left.
func signalled(args []string) error {
	delay, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	cmd := exec.Command(args[3], args[4:]...)
	cmd.Stdout = os.Stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	signalAt(cmd.Process, stderr, args[0], delay, regexp.MustCompile(args[2]))
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	for err = nil; err != syscall.ECHILD; {
		_, err = syscall.Wait4(-1, nil, 0, nil)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		os.Exit(100 + int(status.Signal()))
	}
	os.Exit(status.ExitStatus())
	return nil
}

// signalAt copies what the process writes to its end, and signals it on the way.
func signalAt(p *os.Process, stderr io.Reader, letters string, delay time.Duration, pattern *regexp.Regexp) {
	names := map[rune]os.Signal{'I': syscall.SIGINT, 'T': syscall.SIGTERM, 'K': syscall.SIGKILL}
	var seen bytes.Buffer
	for lines := bufio.NewScanner(io.TeeReader(stderr, os.Stderr)); lines.Scan(); {
		seen.Write(lines.Bytes())
		if letters == "" || !pattern.Match(seen.Bytes()) {
			continue
		}
		time.Sleep(delay)
		for _, l := range letters {
			if l == 'C' {
				killChildren(p.Pid)
			} else {
				_ = p.Signal(names[l])
			}
			time.Sleep(100 * time.Millisecond)
		}
		letters = ""
	}
}

func killChildren(parent int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, name := range lists {
		list, _ := os.ReadFile(name) // the thread may be gone
		for word := range strings.FieldsSeq(string(list)) {
			if pid, err := strconv.Atoi(word); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}
