// Weir shows what package weir does. See weir help.
//
// Exit codes: 0; 1 when what was asked for failed; 2 for wrong input; 130 and 143 when SIGINT or SIGTERM
// ended it. What goes wrong is one line on stderr.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the command with everything it touches; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err != nil {
		fmt.Fprintln(stderr, "weir: "+oneLine(err))
	}
	return exitCode(err)
}

// wrongInput is an error of the command line.
type wrongInput struct{ error }

// wrong makes a wrongInput.
func wrong(format string, args ...any) error { return wrongInput{fmt.Errorf(format, args...)} }

// interrupted is the error of a command that a signal ended.
type interrupted struct{ signal syscall.Signal }

func (e interrupted) Error() string {
	if e.signal == syscall.SIGTERM {
		return "terminated"
	}
	return "interrupted"
}

func exitCode(err error) int {
	var byInput wrongInput
	var bySignal interrupted
	switch {
	case err == nil:
		return 0
	case errors.As(err, &byInput):
		return 2
	case errors.As(err, &bySignal):
		return 128 + int(bySignal.signal)
	default:
		return 1
	}
}

// oneLine is the error's text without the name that stands before it anyway.
func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "weir: ")
	return strings.Join(strings.Fields(text), " ")
}
