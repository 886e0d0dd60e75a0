package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// folder is what is served. os.Root keeps all that is opened inside, whatever is moved or linked meanwhile.
type folder struct {
	root  *os.Root
	path  string        // absolute, to show
	lists chan struct{} // a place for each list that is made at a time
	pages atomic.Int64  // bytes of lists that clients have not taken yet
	pool  sync.Pool     // of *[]byte, to copy with
	stall time.Duration // how long a client may take nothing
}

const (
	listsAtOnce  = 16
	maxPageBytes = 64 << 20 // of lists that clients have not taken yet; a list of 10,000 entries may have 10 MB
	copyBytes    = 64 << 10
	maxStall     = time.Minute
)

// openFolder opens it, and looks whether it can be listed.
func openFolder(dir string) (*folder, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %q", dir)
	case err != nil:
		return nil, fmt.Errorf("the folder %q: %w", dir, bare(err))
	case !info.IsDir():
		return nil, fmt.Errorf("%q is a file; what is served is a folder", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("the folder %q: %w", dir, bare(err))
	}
	f := &folder{root: root, path: dir, lists: make(chan struct{}, listsAtOnce), stall: maxStall}
	f.pool.New = func() any { b := make([]byte, copyBytes); return &b }
	if abs, err := filepath.Abs(dir); err == nil {
		f.path = abs
	}
	if err := readable(root); err != nil {
		f.close()
		return nil, fmt.Errorf("the folder %q: %w", dir, bare(err))
	}
	return f, nil
}

func (f *folder) close() { _ = f.root.Close() }

func readable(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err = d.ReadDir(1); err == io.EOF {
		return nil
	}
	return err
}

// bare is the error without the name of the call and of the file.
func bare(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// errRefused is the error for what is not served though it may be there.
var errRefused = errors.New("not served")

// within is the name in the folder of a request's path, "." for the folder itself, and whether it ended in a slash.
func within(path string) (name string, slash bool, err error) {
	name, ok := strings.CutPrefix(path, "/")
	if !ok {
		return "", false, errRefused
	}
	if name == "" {
		return ".", true, nil
	}
	name, slash = strings.CutSuffix(name, "/")
	for element := range strings.SplitSeq(name, "/") {
		if !isServed(element) {
			return "", false, errRefused
		}
	}
	return name, slash, nil
}

// isServed says whether what has this name is served: it is not hidden, and it is one element on any system.
func isServed(element string) bool {
	return element != "" && element[0] != '.' && !strings.ContainsAny(element, "\x00\\/") &&
		(runtime.GOOS != "windows" || !strings.ContainsAny(element, ":~")) // streams, and short names of hidden files
}

// open opens a file or folder without ever waiting for it: a pipe has no writer, and a device may be anything.
func (f *folder) open(name string) (*os.File, fs.FileInfo, error) {
	info, err := f.root.Stat(name)
	if err == nil && !isPlain(info) {
		err = errRefused
	}
	if err != nil {
		return nil, nil, err
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|openNoWait, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = file.Stat(); err == nil && !isPlain(info) { // it was another one just before
		err = errRefused
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func isPlain(info fs.FileInfo) bool { return info.Mode().IsRegular() || info.IsDir() }

var errBusy = errors.New("too many lists are on their way")

// statusOf is what a client is told of an error. What must not be served is not there.
func statusOf(err error) int {
	for _, errno := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, errBusy} {
		if errors.Is(err, errno) {
			return http.StatusServiceUnavailable
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return http.StatusForbidden
	case errors.Is(err, syscall.EIO):
		return http.StatusInternalServerError
	default:
		return http.StatusNotFound
	}
}
