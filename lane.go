package weir

import "github.com/weirnet/weir/internal/share"

// Lane is a group of sources that weighs as much under the bound as any other lane of its loop. A listener and its
// connections are one, a UDP socket is one, and so are all connections that were dialled or adopted; NewLane makes others,
// for what a program wants to weigh together.
type Lane struct {
	loop *Loop
	lane share.Lane
}

// NewLane makes a lane. It costs nothing while nothing of it is ready.
func (l *Loop) NewLane() *Lane { return &Lane{loop: l} }

// SetLane moves the connection to another lane of its loop; nil is the one that it began with, its listener's or that of
// connections without a listener. It begins there without credit and without debt; the rest of a visit that it is in the
// middle of is still the old lane's to pay. One whose bound is not Share keeps the lane of its own.
// It panics if the lane is another loop's.
func (c *Conn) SetLane(lane *Lane) {
	l := c.loop
	to := c.firstLane()
	if lane != nil {
		if lane.loop != l {
			panic("weir: SetLane: the lane is another loop's")
		}
		to = &lane.lane
	}
	if c.state == connClosed || c.limits.bound.exempt() || c.source.Lane() == to {
		return
	}
	c.lane = lane
	old := c.source
	ready := l.ring.Leave(old)
	c.source = to.NewSource(c)
	l.ring.Made(c.source)
	if ready {
		l.becameReady(c.source)
		c.source.Since = old.Since
	}
}

// Lane is the one that SetLane moved the connection to; nil is the one that it began with.
func (c *Conn) Lane() *Lane { return c.lane }

// firstLane is where the connection began.
func (c *Conn) firstLane() *share.Lane {
	if c.listener != nil {
		return &c.listener.lane
	}
	return &c.loop.outgoing
}
