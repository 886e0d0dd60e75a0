package weirhttp

// CloseIdleConnections closes the connections that no request uses, over QUIC and TCP.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	c := t.core
	t.mu.Unlock()
	if c == nil {
		return
	}
	c.mu.Lock()
	for conn := range c.conns {
		if conn.requests == 0 {
			conn.dropLocked()
		}
	}
	c.mu.Unlock()
	c.tcp.CloseIdleConnections()
}

// Close closes all QUIC connections, whose peers are told, and the UDP socket, and waits until that is done. Requests on
// them fail. A TCP transport that is the Transport's own closes its connections as they become idle. A second Close does
// nothing.
func (t *Transport) Close() error {
	t.mu.Lock()
	c, again := t.core, t.closed
	t.closed = true
	t.mu.Unlock()
	if c == nil || again {
		return nil
	}
	return c.close()
}

func (c *transportCore) close() error {
	c.mu.Lock()
	c.closed = true
	for conn := range c.conns {
		conn.dropLocked()
		conn.endLocked()
	}
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
	if c.ownTCP {
		c.tcp.CloseIdleConnections()
	}
	c.mu.Lock()
	transport, udp := c.quic, c.udp
	c.mu.Unlock()
	if transport == nil {
		return nil
	}
	_ = transport.Close() // the connections are closed, and nobody else uses it
	return udp.Close()
}
