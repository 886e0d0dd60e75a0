package memsys

import (
	"path"
	"strings"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// The longest names: of sun_path without the zero that marks an abstract one, and PATH_MAX and NAME_MAX of a path.
const (
	maxAbstract = 107
	maxPath     = 4095
	maxElement  = 255
)

// unixAt finds a socket of the family UnixFamily.
func (n *Net) unixAt(fd int) (*socket, error) {
	s, err := n.socket(fd)
	if err == nil && s.family != sys.UnixFamily {
		return nil, syscall.EAFNOSUPPORT
	}
	return s, err
}

func abstract(name string) bool { return strings.HasPrefix(name, "@") }

// unixKey is where a name is found in Net.unix.
func unixKey(name string) string {
	if abstract(name) {
		return name
	}
	return path.Clean(name)
}

func checkName(name string) error {
	switch {
	case name == "", abstract(name) && len(name)-1 > maxAbstract:
		return syscall.EINVAL
	case abstract(name):
		return nil
	case strings.IndexByte(name, 0) >= 0:
		return syscall.EINVAL
	case len(name) > maxPath:
		return syscall.ENAMETOOLONG
	}
	for element := range strings.SplitSeq(name, "/") {
		if len(element) > maxElement {
			return syscall.ENAMETOOLONG
		}
	}
	return nil
}

func (k kernel) BindUnix(fd int, name string) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.BindUnix++
	s, err := k.n.unixAt(fd)
	if err != nil {
		return err
	}
	if err := checkName(name); err != nil {
		return err
	}
	key := unixKey(name)
	_, there := k.n.unix[key]
	_, inFile := k.n.unix[path.Dir(key)]
	switch {
	case abstract(name) && s.name != "":
		return syscall.EINVAL
	case there:
		return syscall.EADDRINUSE
	case !abstract(name) && inFile:
		return syscall.ENOTDIR
	case s.name != "": // a path is made first, and removed again
		return syscall.EINVAL
	}
	s.name = name
	k.n.unix[key] = s
	return nil
}

// unixNamed finds the socket of a name.
func (n *Net) unixNamed(name string, kind sys.Kind) (*socket, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	s, there := n.unix[unixKey(name)]
	switch {
	case s == nil && (there || abstract(name)):
		return nil, syscall.ECONNREFUSED
	case s == nil:
		return nil, syscall.ENOENT
	case s.kind != kind:
		return nil, syscall.EPROTOTYPE
	}
	return s, nil
}

// endName frees an abstract name; a path stays without its socket.
func (s *socket) endName() {
	key := unixKey(s.name)
	switch {
	case s.name == "" || s.net.unix[key] != s:
	case abstract(s.name):
		delete(s.net.unix, key)
	default:
		s.net.unix[key] = nil
	}
}

func (k kernel) UnlinkUnix(name string) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.UnlinkUnix++
	if _, there := k.n.unix[unixKey(name)]; !there || abstract(name) {
		return syscall.ENOENT
	}
	delete(k.n.unix, unixKey(name))
	return nil
}

func (k kernel) LocalUnix(fd int) (string, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.LocalUnix++
	s, err := k.n.unixAt(fd)
	if err != nil {
		return "", err
	}
	return s.name, nil
}

func (k kernel) RemoteUnix(fd int) (string, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.RemoteUnix++
	s, err := k.n.unixAt(fd)
	if err != nil {
		return "", err
	}
	peer := s.unixPeer()
	if peer == nil {
		return "", syscall.ENOTCONN
	}
	return peer.name, nil
}

// unixPeer is the peer of either kind, or nil.
func (s *socket) unixPeer() *socket {
	if s.gram != nil {
		return s.gram.peer
	}
	return s.stream.other
}

func (k kernel) ConnectUnix(fd int, name string) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.ConnectUnix++
	s, err := k.n.unixAt(fd)
	switch {
	case err != nil:
		return err
	case s.gram != nil && name == "":
		s.associate(nil)
		return nil
	}
	to, err := k.n.unixNamed(name, s.kind)
	switch {
	case err != nil:
		return err
	case s.gram != nil && !to.hears(s):
		return syscall.EPERM
	case s.gram != nil:
		s.associate(to)
		return nil
	}
	return s.connectUnix(to)
}
