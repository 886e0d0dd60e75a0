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
	return sys.Description{Family: s.family, Kind: s.kind, Listening: s.listening(), Cookie: s.cookie}, nil
}

func (k kernel) Duplicate(fd int) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Duplicate++
	s, err := k.n.socket(fd)
	if err != nil {
		return -1, err
	}
	return k.n.enter(s)
}

// Unblock has nothing to do: no call here blocks.
func (k kernel) Unblock(fd int) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Unblock++
	_, err := k.n.socket(fd)
	return err
}

// Unbatched answers nil: all calls here move many.
func (k kernel) Unbatched() (recv, send error) { return nil, nil }
