// Package fault describes faults of the operating system as data, and decides which call is hit.
//
// A [Plan] is a list of rules and a seed. A [Rule] names a call ([Recv]), which of these calls it hits (the
// third; the first ten; one in a hundred; those on descriptor 5), and what becomes of them (an errno, a
// shorter batch, a delay, a lost datagram). An [Injector] counts the calls and answers what to do with each.
// It makes no call and never sleeps: who makes the calls asks it, and does as it says.
//
// # Text
//
// A plan has a text of one line, for flags and test tables. [Parse] reads it, String writes it:
//
//	send#3=EPERM                  the third send answers EPERM
//	recv=short:1                  each receive moves one message
//	read=short:1                  each read of a stream moves one byte
//	recv#2*=ENOSYS                from the second on, each receive answers ENOSYS
//	send@fd5#2x10=ENOBUFS         on descriptor 5, the second send and the nine after it
//	seed=7; send%0.01=drop        one send in a hundred is lost, the same ones in each run
//	wait#4=delay:20ms+EBADF       the fourth wait takes 20 ms longer, and fails
//
// In full, with blanks around items only:
//
//	plan   = [ item ] { ";" [ item ] } .
//	item   = "seed=" N | rule .                      // one seed at most
//	rule   = call { "@fd" N | "#" N | "x" N | "*" | "%" P } "=" action { "+" action } .
//	action = errno | "short:" N | "drop" | "delay:" D .
//
// A call is named as in [Call]. "#" counts the matching calls from 1. "x" is how many of them are looked at
// one after the other, "*" all; without either it is one after a "#", else all. "%" is a chance above 0 and up
// to 1, and makes it all again. An errno is a name of POSIX ("EPERM") or a number. D is a [time.Duration]. A
// rule has one of errno, short and drop, with a delay or without.
//
// # Limits
//
//   - The errnos that a text can name are those that package syscall has on Linux, macOS, the BSDs and
//     Windows. A number means what the machine that reads it means by it.
//   - "drop" is for send, recv and recverr, "short" for these, wait and what moves the bytes of a stream: read,
//     write, sendfile, writefiles and readfiles. No rule makes up data, reorders it, loses a stream's, or loses a
//     wake-up.
//   - A chance depends on the seed, the rule's place and the call's number. Calls that race for a number may
//     differ from run to run.
//   - Where two rules hit the same call, the first one of the plan decides.
package fault
