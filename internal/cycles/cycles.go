// Package cycles reads the processor's counter, which costs a fraction of a reading of the clock: the time is
// worth asking for only once the counter says that some has gone by.
//
// Counters of different processors may differ, and a machine may have none that can be read. So a difference
// says when to look at the clock, and nothing else.
package cycles
