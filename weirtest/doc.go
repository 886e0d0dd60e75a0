// Package weirtest tests what is built on weir, and weir itself: a network in memory, and sweeps that have every
// call to the operating system fail once.
//
// A [Network] is a kernel in memory for Config.Kernel. Loops on one Network reach each other; nothing leaves the
// process, ports are given out in order, and nothing is lost but by a full buffer. In a testing/synctest bubble the
// clock stands still while a loop runs, so that timeouts of hours are tested at once, and exactly.
//
// A fault plan (Config.Faults, package fault) has calls fail, on any kernel. [Sweep] writes the plans itself: it runs
// a scenario with the first call of each kind failing, then the second, and so on, with each errno that the manual
// gives it, and looks each time whether the loop ended, whether anything is left behind, and whether it keeps a
// processor busy. [Balance] tells whether every datagram is accounted for, and [StreamBalance] every byte.
//
// # Limits
//
//   - A Network answers as Linux does, for TCP, UDP and unix sockets: 127.0.0.0/8, ::1 and what AddAddr names, without
//     loss, delay, routers or fragments. It looks up no names (Loop.Dial), and a unix path is no file. What else it
//     lacks is answered as on a system that lacks it: ENOPROTOOPT, ErrUnsupported.
//   - Loops that talk to each other in bubbles belong to the same one.
//   - Sweep and CheckLeaks look at all goroutines and descriptors of the process, so nothing else may run beside
//     them: no t.Parallel.
package weirtest
