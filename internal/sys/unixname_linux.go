//go:build linux

package sys

import (
	"bytes"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	unixFamilyBytes  = unsafe.Offsetof(unix.RawSockaddrUnix{}.Path)
	unixPathBytes    = unsafe.Sizeof(unix.RawSockaddrUnix{}.Path)
	maxUnixNameBytes = int(unixPathBytes) - 1 // of a path with its zero behind it, of an abstract name with that in front
)

func isAbstract(name string) bool { return strings.HasPrefix(name, "@") }

// heldDir is a directory that a long path goes through, open while the kernel looks the name up; -1: none.
type heldDir int

func (d heldDir) close() {
	if d >= 0 {
		_ = unix.Close(int(d))
	}
}

// putUnixName writes a name that is not empty, and returns its length. The caller closes the directory behind the
// call.
func putUnixName(raw *unix.RawSockaddrUnix, name string) (size uintptr, dir heldDir, err error) {
	raw.Family = unix.AF_UNIX
	path := pathBytes(raw)
	switch {
	case isAbstract(name):
		if len(name)-1 > maxUnixNameBytes {
			return 0, -1, unix.EINVAL
		}
		copy(path[1:], name[1:])
		return unixFamilyBytes + uintptr(len(name)), -1, nil
	case strings.IndexByte(name, 0) >= 0:
		return 0, -1, unix.EINVAL
	case len(name) > maxUnixNameBytes:
		dir, name, err = shortenPath(name)
		if err != nil {
			return 0, -1, err
		}
		if len(name) > maxUnixNameBytes {
			dir.close()
			return 0, -1, unix.ENAMETOOLONG
		}
	default:
		dir = -1
	}
	copy(path, name)
	return unixFamilyBytes + uintptr(len(name)) + 1, dir, nil
}

// shortenPath opens the directory of a path that sun_path has no room for, and names the socket by way of it.
func shortenPath(path string) (dir heldDir, short string, err error) {
	at, base := ".", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		at, base = path[:i+1], path[i+1:]
	}
	for {
		fd, err := unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return heldDir(fd), "/proc/self/fd/" + strconv.Itoa(fd) + "/" + base, nil
		case unix.EINTR:
		default:
			return -1, "", err
		}
	}
}

// getUnixName reads a name that the kernel wrote. A path that looks like an abstract name gets its directory in
// front.
func getUnixName(raw *unix.RawSockaddrUnix, size uint32) string {
	if size <= uint32(unixFamilyBytes) || raw.Family != unix.AF_UNIX {
		return ""
	}
	path := pathBytes(raw)
	path = path[:min(int(size)-int(unixFamilyBytes), len(path))] // a path of 108 bytes is told with its zero
	if path[0] == 0 {
		path[0] = '@'
		return string(path)
	}
	if i := bytes.IndexByte(path, 0); i >= 0 {
		path = path[:i]
	}
	if path[0] == '@' {
		return "./" + string(path)
	}
	return string(path)
}

// pathBytes is sun_path, whose bytes are signed on some machines.
func pathBytes(raw *unix.RawSockaddrUnix) []byte {
	return (*[unixPathBytes]byte)(unsafe.Pointer(&raw.Path))[:]
}
