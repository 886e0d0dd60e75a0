package memsys

// SetMaxDescriptors sets how many descriptors may be open at a time, all loops together: what would make another
// one then answers EMFILE. 0: any number.
func (n *Net) SetMaxDescriptors(limit int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.maxOpen = limit
}

// full tells whether another descriptor would be one too many.
func (n *Net) full() bool { return n.maxOpen > 0 && n.opened >= n.maxOpen }

// LimitWrites has each Write and SendFile on fd take at most so many bytes; 0: as many as there is room for.
func (n *Net) LimitWrites(fd, bytes int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, err := n.streamAt(fd)
	if err != nil {
		return err
	}
	s.stream.mostBytes = bytes
	return nil
}
