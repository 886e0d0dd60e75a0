//go:build linux

package dgram

// Write waits as a write of the Conn does: while one of those waits, the runtime's deadline is not the caller's.
func (r rawConn) Write(f func(fd uintptr) bool) error {
	if err := r.conn.send.await(f); err != nil {
		return r.conn.opError("raw-write", nil, err)
	}
	return nil
}
