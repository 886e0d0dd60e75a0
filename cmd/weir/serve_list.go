package main

import (
	"bytes"
	"cmp"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxListed is how many entries a list has at most.
const maxListed = 10_000

// entry is a line of a list.
type entry struct {
	name    string
	dir     bool
	size    int64
	changed time.Time
}

// serveList answers with the folder's list. Only so many are made at once, as each takes memory and descriptors, and only
// so much of them waits for clients that do not read.
func (f *folder) serveList(w http.ResponseWriter, r *http.Request, name string) error {
	select {
	case f.lists <- struct{}{}:
	case <-r.Context().Done():
		return r.Context().Err()
	}
	entries, more, err := f.list(name, maxListed)
	<-f.lists
	if err != nil {
		return err
	}
	page := listPage(name, entries, more)
	size := int64(cap(page))
	defer f.pages.Add(-size)
	if f.pages.Add(size) > maxPageBytes {
		return errBusy
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Length", strconv.Itoa(len(page)))
	if r.Method == http.MethodGet {
		_, _ = f.copier(w).ReadFrom(bytes.NewReader(page)) // a client that has gone
	}
	return nil
}

// list returns the entries of a folder that would be served, folders first; more says that there are others.
func (f *folder) list(name string, most int) (entries []entry, more bool, err error) {
	// What is asked of its entries goes by this descriptor, so that a folder that is moved lists nothing else.
	sub, err := f.root.OpenRoot(name)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = sub.Close() }()
	dir, err := sub.Open(".")
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = dir.Close() }()
	for err == nil && !more {
		var found []fs.DirEntry
		found, err = dir.ReadDir(256)
		for _, d := range found {
			if e, ok := f.look(sub, name, d); ok && len(entries) == most {
				more = true
				break
			} else if ok {
				entries = append(entries, e)
			}
		}
	}
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	sortEntries(entries)
	return entries, more, nil
}

// look is what a list says of d in sub, which is the folder called name; not ok is what would not be served, or is
// gone.
func (f *folder) look(sub *os.Root, name string, d fs.DirEntry) (e entry, ok bool) {
	if !isServed(d.Name()) {
		return e, false
	}
	info, err := sub.Lstat(d.Name())
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		info, err = f.root.Stat(path.Join(name, d.Name())) // it may lead to another folder of the root
	}
	if err != nil || !isPlain(info) {
		return e, false
	}
	return entry{d.Name(), info.IsDir(), info.Size(), info.ModTime()}, true
}

func sortEntries(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int {
		if a.dir != b.dir {
			if a.dir {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name)), strings.Compare(a.name, b.name))
	})
}
