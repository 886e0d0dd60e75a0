//go:build linux

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// "Not served …: devices, sockets and pipes": nor are they waited for, as an open of a pipe without a writer would.
func TestServeSpecial(t *testing.T) {
	t.Parallel()
	f := newSite(t, map[string]string{"piped/": ""})
	for name, mode := range map[string]uint32{
		"pipe": unix.S_IFIFO, "socket": unix.S_IFSOCK, "piped/index.html": unix.S_IFIFO,
	} {
		if err := unix.Mknod(filepath.Join(f.path, name), mode|0o644, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("pipe", filepath.Join(f.path, "to-pipe")); err != nil {
		t.Fatal(err)
	}
	paths := []string{"/pipe", "/pipe/", "/socket", "/to-pipe", "/piped/index.html"}
	device := filepath.Join(f.path, "device")
	if err := unix.Mknod(device, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5))); err == nil { // needs privileges; /dev/zero
		paths = append(paths, "/device")
	}
	for _, path := range paths {
		if w := ask(f, http.MethodGet, path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/", "/piped/"} {
		w := ask(f, http.MethodGet, path)
		for _, href := range links(t, w.Body.Bytes()) {
			if w.Code != 200 || href != "./piped/" && href != "../" {
				t.Errorf("%s: %d lists %s", path, w.Code, href)
			}
		}
	}
}

// TestServeSwapped has a file become a pipe between the look at it and its opening.
func TestServeSwapped(t *testing.T) {
	t.Parallel()
	f := newSite(t, map[string]string{"a": "a"})
	name, pipe, kept := filepath.Join(f.path, "a"), filepath.Join(f.path, "pipe"), filepath.Join(f.path, "kept")
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				_ = os.Rename(name, kept)
				_ = os.Rename(pipe, name)
				_ = os.Rename(name, pipe)
				_ = os.Rename(kept, name)
			}
		}
	}()
	for range 3000 { // each returns at once
		if w := ask(f, http.MethodGet, "/a"); w.Code != 404 && (w.Code != 200 || w.Body.String() != "a") {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	}
	close(end)
	<-ended
}

// A request without descriptors is told so, and the next is served.
func TestServeStatuses(t *testing.T) {
	t.Parallel()
	for errno, want := range map[error]int{
		unix.EMFILE: 503, unix.ENFILE: 503, unix.EACCES: 403, unix.EPERM: 403, unix.EIO: 500, unix.ENOENT: 404,
		unix.ENOTDIR: 404, unix.ELOOP: 404, unix.ENAMETOOLONG: 404, errRefused: 404,
	} {
		if got := statusOf(&os.PathError{Op: "open", Path: "a", Err: errno}); got != want {
			t.Errorf("%v: %d, want %d", errno, got, want)
		}
	}
}
