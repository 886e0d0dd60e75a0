package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/weirnet/weir"
)

const fewBytes = 10

func (e *exam) tcp(ctx context.Context) []check {
	t := talk{bytes: fewBytes}
	if err := t.try(ctx, e); err != nil {
		return []check{failed("tcp", err)}
	}
	return []check{on("tcp", "a listener and who dials it hear each other over loopback")}
}

const (
	wantedBacklog = 4096 // the default of weir
	tinyBacklog   = 128  // what Linux had by default until 5.4
)

// backlog is about the system's limit of it, by which the kernel cuts what a listener asks for without a word.
func (e *exam) backlog(context.Context) []check {
	const name, sysctl = "backlog", "net.core.somaxconn"
	raise := fmt.Sprintf("sysctl -w %s=%d", sysctl, wantedBacklog)
	text, err := e.read("sys/net/core/somaxconn")
	n, unknown := strconv.Atoi(text)
	has := fmt.Sprintf("at most %s can wait to be accepted (%s)", grouped(uint64(max(n, 0))), sysctl)
	switch {
	case err != nil || unknown != nil:
		return []check{note(name, "the system does not tell its limit", "")}
	case n < tinyBacklog:
		return []check{degraded(name, has+": less than Linux has by default; more at once are dropped, and come late", raise)}
	case n < wantedBacklog:
		return []check{note(name, fmt.Sprintf("%s; a listener of weir asks for %s", has, grouped(wantedBacklog)), "for many at once: "+raise)}
	default:
		return []check{on(name, has)}
	}
}

// abstractName is one that nobody else has: they are the whole machine's.
func abstractName() string { return "@weir-doctor-" + rand.Text() }

func (e *exam) unixSockets(ctx context.Context) []check {
	t := talk{unix: abstractName(), bytes: fewBytes}
	if err := t.try(ctx, e); err != nil {
		return []check{failed("unix_sockets", err)}
	}
	return []check{on("unix_sockets", "a listener with an abstract name, and who dials it, hear each other")}
}

// descriptors sends this program's file over a unix socket, and reads from what comes.
func (e *exam) descriptors(ctx context.Context) []check {
	const name = "descriptors"
	f, err := e.program()
	if err != nil {
		return []check{unread(name, err)}
	}
	defer f.Close()
	came := errors.New("the bytes came over a unix socket, the descriptor with them did not")
	t := talk{
		unix: abstractName(), bytes: fewBytes, config: weir.ConnConfig{MaxFiles: 1},
		write:   func(c *weir.Conn) error { return c.WriteFiles(make([]byte, fewBytes), int(f.Fd())) },
		onFiles: func(_ *weir.Conn, files *weir.Files) { came = sameFile(f, files) },
	}
	if err := t.try(ctx, e); err != nil {
		return []check{failed(name, err)}
	}
	return []check{judgeDescriptors(came)}
}

// sameFile tells what is wrong with a descriptor that came.
func sameFile(sent *os.File, files *weir.Files) error {
	if files.Truncated() {
		return errors.New("one was sent over a unix socket, and the kernel did not let it in")
	}
	if n := files.Len(); n != 1 {
		return fmt.Errorf("%s came", plural(n, "descriptor"))
	}
	got := os.NewFile(uintptr(files.Take(0)), "what came")
	defer got.Close()
	want, have := make([]byte, fewBytes), make([]byte, fewBytes)
	_, err := sent.ReadAt(want, 0)
	if err == nil {
		_, err = got.ReadAt(have, 0)
	}
	if err == nil && !bytes.Equal(want, have) {
		err = errors.New("a descriptor came that is not the one that was sent")
	}
	return err
}

func judgeDescriptors(err error) check {
	if err == nil {
		return on("descriptors", "one went over a unix socket, and works")
	}
	return degraded("descriptors", oneLine(err), "see that no security module (SELinux, AppArmor) forbids it; "+raiseFiles)
}

// fileBytes are more than goes through the loop's memory with one call.
const fileBytes = 128 << 10

// sendFile sends a part of this program's file.
func (e *exam) sendFile(ctx context.Context) []check {
	f, err := e.program()
	if err != nil {
		return []check{unread("sendfile", err)}
	}
	defer f.Close()
	t := talk{bytes: fileBytes, write: func(c *weir.Conn) error {
		return c.SendFile(f, 0, fileBytes, func(error) {}) // onClose hears of an error, too
	}}
	err = t.try(ctx, e)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file of this program is too short to try it")
	}
	return []check{judgeSendFile(t.writes, err)}
}

// judgeSendFile goes by the calls. Where sendfile(2) is refused weir reads a file and writes it in two pieces.
func judgeSendFile(calls int, err error) check {
	const name = "sendfile"
	took := fmt.Sprintf("%s of a file went out in %s", bytesText(fileBytes), plural(calls, "call"))
	switch {
	case err != nil:
		return failed(name, err)
	case calls <= 1:
		return on(name, took+", without a copy")
	case calls == 2:
		return degraded(name, took+": sendfile is missing or refused, so weir reads files and writes them",
			"allow sendfile in the seccomp profile, or in the sandbox that this runs in")
	default:
		return note(name, took+", as socket buffers are small; whether without a copy was not seen", "")
	}
}

// unread is a check that wanted the program's file.
func unread(name string, err error) check {
	if errors.Is(err, syscall.EMFILE) {
		return failed(name, err)
	}
	return note(name, "not tried, as the file of this program cannot be read: "+oneLine(err), "")
}
