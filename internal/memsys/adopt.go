package memsys

import "github.com/weirnet/weir/internal/sys"

func (k kernel) Describe(fd int) (sys.Description, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Describe++
	s, err := k.n.socket(fd)
	if err != nil {
		return sys.Description{}, err
	}
	return sys.Description{Family: s.family, Kind: sys.UDP, Cookie: s.cookie}, nil
}

func (k kernel) Duplicate(fd int) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Duplicate++
	s, err := k.n.socket(fd)
	if err != nil {
		return -1, err
	}
	return k.n.enter(s), nil
}

// Unbatched answers nil: all calls here move many.
func (k kernel) Unbatched() (recv, send error) { return nil, nil }
