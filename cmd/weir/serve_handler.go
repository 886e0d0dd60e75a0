package main

import (
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
)

// ServeHTTP answers GET and HEAD with what is in the folder.
func (f *folder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed)
		return
	}
	name, slash, err := within(r.URL.Path)
	if err == nil {
		err = f.serve(w, r, name, slash)
	}
	if err != nil {
		refuse(w, statusOf(err))
	}
}

func refuse(w http.ResponseWriter, status int) {
	http.Error(w, fmt.Sprintf("%d %s", status, http.StatusText(status)), status)
}

// serve answers with a file or folder. An error means that nothing was answered.
func (f *folder) serve(w http.ResponseWriter, r *http.Request, name string, slash bool) error {
	file, info, err := f.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	switch {
	case info.IsDir() && !slash:
		redirect(w, r, path.Base(name))
		return nil
	case info.IsDir():
		return f.serveFolder(w, r, name)
	case slash:
		return errRefused // a file is no folder
	}
	f.serveFile(w, r, file, info, name)
	return nil
}

// redirect sends the client from a folder's name to the same with a slash. The location is relative to the request, so
// that no path can lead to another host.
func redirect(w http.ResponseWriter, r *http.Request, name string) {
	to := "./" + url.PathEscape(name) + "/"
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusMovedPermanently)
}

// serveFolder answers with index.html, or a list.
func (f *folder) serveFolder(w http.ResponseWriter, r *http.Request, name string) error {
	const indexName = "index.html"
	index, info, err := f.open(path.Join(name, indexName))
	switch {
	case err == nil:
		defer func() { _ = index.Close() }()
		if info.IsDir() {
			break
		}
		f.serveFile(w, r, index, info, indexName)
		return nil
	case statusOf(err) != http.StatusNotFound:
		return err
	}
	return f.serveList(w, r, name)
}

// serveFile leaves ranges and conditions to http.ServeContent. Content may be had from a cache, but only after the
// server was asked, as files change.
func (f *folder) serveFile(w http.ResponseWriter, r *http.Request, file *os.File, info fs.FileInfo, name string) {
	h := w.Header()
	h.Set("ETag", fmt.Sprintf(`"%x-%x"`, info.Size(), info.ModTime().UnixNano()))
	h.Set("Cache-Control", "no-cache")
	if t := contentType(name); t != "" {
		h.Set("Content-Type", t)
	}
	http.ServeContent(f.copier(w), r, name, info.ModTime(), file)
}

// plainTexts are names that a browser should show, and that systems know under other types or not at all.
var plainTexts = map[string]bool{
	".conf": true, ".csv": true, ".go": true, ".ini": true, ".log": true, ".md": true, ".mod": true, ".sh": true,
	".toml": true, ".txt": true, ".yaml": true, ".yml": true,
}

// contentType is that of a name; "" is to be found out from the content.
func contentType(name string) string {
	ext := strings.ToLower(path.Ext(name))
	switch {
	case plainTexts[ext]:
		return "text/plain; charset=utf-8"
	case ext == ".webmanifest":
		return "application/manifest+json"
	default:
		return mime.TypeByExtension(ext)
	}
}
