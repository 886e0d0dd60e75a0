package weir

import "time"

// costEstimate is what a datagram costs, receive call included. It only sizes the next receive call; what is
// charged is measured. One sample moves it little, as a pre-emption may be in it: an estimate that is too
// low for a while only means that datagrams are kept.
type costEstimate struct{ perDatagram time.Duration }

func (c *costEstimate) learn(took time.Duration, datagrams int) {
	if datagrams == 0 {
		return
	}
	sample := min(took/time.Duration(datagrams), 4*max(c.perDatagram, minCost))
	c.perDatagram += (sample - c.perDatagram) / 4
}
