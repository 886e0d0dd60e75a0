package dgram

import "net/netip"

// Filter says whether a datagram passes. It is called by one goroutine at a time, must neither block nor call the Conn, and
// b is valid until it returns.
type Filter func(b []byte, from netip.AddrPort) (pass bool)

// SetFilter has f asked about each datagram before a read gets it, from now on; nil: all pass. One that is refused is
// dropped, and counted (Stats.Filtered). It is for floods: what is refused is not copied, and no read returns for it.
func (c *Conn) SetFilter(f Filter) {
	if f == nil {
		c.filter.Store(nil)
		return
	}
	c.filter.Store(&f)
}
