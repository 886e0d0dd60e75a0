//go:build linux && perf

package lab

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// build makes the programs of this module and returns where they are.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./...").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// child is a program that answers lines.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	first string // what it says when it is ready
}

// start runs a program on processor cpu, or anywhere where that is below zero.
func start(t *testing.T, cpu int, program string, args ...string) *child {
	t.Helper()
	cmd := exec.Command(program, args...)
	if cpu >= 0 {
		cmd = exec.Command("taskset", append([]string{"-c", strconv.Itoa(cpu), program}, args...)...)
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	t.Cleanup(c.stop)
	for {
		if first, ok := strings.CutPrefix(c.line(), "ready"); ok { // others may log before
			c.first = strings.TrimSpace(first)
			return c
		}
	}
}

func (c *child) line() string {
	c.t.Helper()
	if !c.lines.Scan() {
		c.t.Fatalf("%v has ended", c.cmd)
	}
	return c.lines.Text()
}

// ask returns the numbers that a program answers.
func (c *child) ask(line string) (n []float64) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
	for _, f := range strings.Fields(c.line()) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			c.t.Fatal(err)
		}
		n = append(n, v)
	}
	return n
}

func (c *child) stop() {
	if c.in == nil {
		return
	}
	_ = c.in.Close()
	c.in = nil
	kill := time.AfterFunc(5*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	_ = c.cmd.Wait()
}
