package weir

import "time"

// costEstimate is what a message costs, receive call included. It only sizes the next receive call; what is
// charged is measured. One sample moves it little, as a pre-emption may be in it: an estimate that is too
// low for a while only means that messages are kept.
type costEstimate struct {
	perMessage time.Duration
	bytes      int // of a message of the last batch
}

func (c *costEstimate) learn(took time.Duration, messages int) {
	if messages == 0 {
		return
	}
	sample := min(took/time.Duration(messages), 4*max(c.perMessage, minCost))
	c.perMessage += (sample - c.perMessage) / 4
}
