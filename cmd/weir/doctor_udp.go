package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weirnet/weir"
)

// loop is whether there can be one, with sockets that hear each other; nothing else can be tried without.
func (e *exam) loop(ctx context.Context) (c check, works bool) {
	err := openRuntimePoller() // for the time limits, before they need it
	if err == nil {
		var o *outcome
		if o, err = e.try(ctx, trial{sizes: equal(1, 10)}); err == nil {
			err = o.whyNot(1)
		}
	}
	switch {
	case err == nil:
		return on("loop", "sockets of a loop hear each other over loopback"), true
	case errors.Is(err, weir.ErrUnsupported):
		return degraded("loop", fmt.Sprintf("weir does not run on %s: %s", e.goos, oneLine(err)), "run it on Linux"), false
	default:
		return failed("loop", err), false
	}
}

// remedyOf is what helps against an error that a trial ended with.
func remedyOf(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return raiseFiles
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOSYS):
		return "allow the system call in the seccomp profile, or in the sandbox that this runs in"
	case strings.Contains(err.Error(), disableVariable):
		return "" // its own line says it
	default:
		return "see that the loopback interface is up, and that no firewall filters it"
	}
}

const crowd = 20 // datagrams sent at once

// batches sends what cannot go as a train, and looks at the calls that it took.
func (e *exam) batches(ctx context.Context) []check {
	o, err := e.try(ctx, trial{config: weir.Config{NoGSO: true, NoGRO: true}, sizes: various(crowd)})
	if err == nil {
		err = o.whyNot(crowd)
	}
	recv := e.path("recvmmsg", "mmsg", err, o.receiver.Paths.BatchedReceives, o.lost["recvmmsg"],
		int(o.receiver.ReceiveBatches), "weir receives one datagram a call")
	send := e.path("sendmmsg", "mmsg", err, o.sender.Paths.BatchedSends, o.lost["sendmmsg"],
		int(o.sender.SendCalls), "weir sends one datagram a call")
	return []check{recv, send}
}

// path judges a system call that moves many datagrams.
func (e *exam) path(name, word string, err error, isOn bool, why error, calls int, without string) check {
	switch {
	case e.disables(word):
		return switchedOff(name)
	case err != nil:
		return failed(name, err)
	case isOn:
		return on(name, fmt.Sprintf("%d datagrams in %s", crowd, plural(calls, "call")))
	case why == nil:
		return degraded(name, "it is not used: "+without, "")
	default:
		return degraded(name, fmt.Sprintf("%s is refused with %s: %s", name, errnoName(why), without),
			fmt.Sprintf("allow %s in the seccomp profile, or in the sandbox that this runs in", name))
	}
}

// trains sends what can go as one, and looks at how it went and came.
func (e *exam) trains(ctx context.Context) []check {
	o, err := e.try(ctx, trial{sizes: equal(crowd, 100)})
	if err == nil {
		err = o.whyNot(crowd)
	}
	return []check{e.gso(o, err), e.gro(o, err)}
}

func (e *exam) gso(o *outcome, err error) check {
	const without = "weir sends each datagram by itself"
	s := o.sender
	switch {
	case e.disables("gso"):
		return switchedOff("gso")
	case err != nil:
		return failed("gso", err)
	case o.lost["gso"] != nil:
		return degraded("gso", fmt.Sprintf("a train is refused with %s: %s", errnoName(o.lost["gso"]), without),
			"allow UDP_SEGMENT in the sandbox that this runs in")
	case !s.Paths.GSO:
		return degraded("gso", "the kernel does not know UDP_SEGMENT: "+without, "run Linux 4.18 or newer, or allow getsockopt")
	case s.SentJoined == 0:
		return degraded("gso", "the kernel knows UDP_SEGMENT, but nothing went joined: "+without, "")
	default:
		return on("gso", fmt.Sprintf("%d datagrams of a size in %s", crowd, plural(int(s.SendCalls), "call")))
	}
}

func (e *exam) gro(o *outcome, err error) check {
	r := o.receiver
	switch {
	case e.disables("gro"):
		return switchedOff("gro")
	case err != nil:
		return failed("gro", err)
	case !r.Paths.GRO:
		return degraded("gro", "the kernel does not take UDP_GRO: weir receives each datagram by itself",
			"run Linux 5.0 or newer, or allow setsockopt")
	case r.ReceivedJoined > 0:
		return on("gro", fmt.Sprintf("%d datagrams of a size in %s", crowd, plural(int(r.ReceiveBatches), "call")))
	case o.sender.SentJoined == 0:
		return note("gro", "the kernel takes UDP_GRO; not seen at work, as loopback joins only what GSO sends", "")
	default:
		return note("gro", "the kernel takes UDP_GRO, but what went joined came one by one", "")
	}
}

// reports sends to a port that nobody listens at.
func (e *exam) reports(ctx context.Context) []check {
	o, err := e.try(ctx, trial{
		from: weir.UDPConfig{Reports: true}, closed: true, sizes: equal(1, 10),
		enough: func(o *outcome) bool { return len(o.errs) > 0 },
	})
	report, found := isICMP(o.errs)
	switch {
	case err != nil:
		return []check{failed("reports", err)}
	case found && report.Errno == syscall.ECONNREFUSED:
		return []check{on("reports", "a closed port is told by an ICMPError")}
	case len(o.errs) > 0:
		return []check{failed("reports", o.errs[0])}
	default:
		return []check{degraded("reports", "a closed port was not told of: weir hears of no ICMP errors",
			"see that no firewall drops ICMP on the loopback interface")}
	}
}

// drops fills the smallest buffer there is.
func (e *exam) drops(ctx context.Context) []check {
	o, err := e.try(ctx, trial{
		to: weir.UDPConfig{RecvBufferBytes: 1}, paused: true, sizes: various(crowd),
		enough: func(o *outcome) bool { return o.receiver.KernelDropped > 0 },
	})
	switch {
	case err != nil:
		return []check{failed("drops", err)}
	case o.receiver.KernelDropped > 0:
		return []check{on("drops", "what the kernel drops shows in Stats at once")}
	default:
		return []check{degraded("drops", "what the kernel drops is not counted: it does not know SO_MEMINFO",
			"run Linux 4.12 or newer, or allow getsockopt")}
	}
}

func (e *exam) localAddress(ctx context.Context) []check {
	return e.field(ctx, "local_address", trial{to: weir.UDPConfig{ReceiveLocal: true}},
		"the address that a datagram was sent to", func(d *weir.Datagram) bool { return d.Local == loopback4 })
}

func (e *exam) ecn(ctx context.Context) []check {
	return e.field(ctx, "ecn", trial{to: weir.UDPConfig{ReceiveECN: true}, options: weir.SendOptions{ECN: weir.ECT0}},
		"congestion marks, as they were sent", func(d *weir.Datagram) bool { return d.ECN == weir.ECT0 })
}

func (e *exam) receiveTime(ctx context.Context) []check {
	return e.field(ctx, "receive_time", trial{to: weir.UDPConfig{ReceiveTime: true}},
		"when the kernel received a datagram", func(d *weir.Datagram) bool { return !d.Time.IsZero() })
}

// field is about what comes with a datagram.
func (e *exam) field(ctx context.Context, name string, t trial, what string, holds func(*weir.Datagram) bool) []check {
	t.sizes = equal(1, 10)
	o, err := e.try(ctx, t)
	if err == nil {
		err = o.whyNot(1)
	}
	switch {
	case err != nil:
		return []check{failed(name, err)}
	case !holds(&o.last):
		return []check{degraded(name, "the kernel does not tell: "+what, "allow setsockopt and control messages in the sandbox that this runs in")}
	default:
		return []check{on(name, what)}
	}
}

// ipv6 is a note where it is missing: a network without it is somebody's choice. Both UDP and TCP have to work.
func (e *exam) ipv6(ctx context.Context) []check {
	o, err := e.try(ctx, trial{at: loopback6, sizes: equal(1, 10)})
	if err == nil {
		err = o.whyNot(1)
	}
	if err == nil {
		t := talk{at: loopback6, bytes: fewBytes}
		err = t.try(ctx, e)
	}
	if err != nil {
		return []check{note("ipv6", oneLine(err)+"; a wildcard socket hears IPv4 alone",
			"where IPv6 is wanted: sysctl -w net.ipv6.conf.all.disable_ipv6=0")}
	}
	return []check{on("ipv6", "sockets hear each other over ::1, by UDP and TCP")}
}

const (
	shortWait = 200 * time.Microsecond
	precise   = 500 * time.Microsecond // a wait in whole milliseconds is late by 800 µs at least
	waits     = 20
)

// timers looks at how late some short waits are.
func (e *exam) timers(ctx context.Context) []check {
	var late []time.Duration
	_, err := e.try(ctx, trial{
		enough: func(*outcome) bool { return len(late) == waits },
		during: func(loop *weir.Loop) {
			var again func()
			again = func() {
				due := time.Now().Add(shortWait)
				loop.AfterFunc(shortWait, func() {
					if late = append(late, time.Since(due)); len(late) < waits {
						again()
					}
				})
			}
			loop.NextTurn(again) // the first turn has the sockets to see to
		},
	})
	if err != nil || len(late) == 0 {
		return []check{failed("timers", errors.Join(err, errors.New("no timer fired")))}
	}
	return []check{judgeTimers(late)}
}

// judgeTimers goes by the first quartile. A busy machine makes any wait late, and now and then one that is
// already due when the loop comes to wait is hardly late at all.
func judgeTimers(late []time.Duration) check {
	slices.Sort(late)
	typical := late[len(late)/4]
	if typical >= precise {
		return degraded("timers", fmt.Sprintf("late by %s: epoll_pwait2 is missing or refused, or the machine is very busy", spaced(typical)),
			"run Linux 5.11 or newer, or allow epoll_pwait2 in the seccomp profile")
	}
	return on("timers", "finer than a millisecond: late by "+spaced(typical))
}

// spaced is a duration with three digits that stays on one line.
func spaced(d time.Duration) string { return strings.ReplaceAll(millis(d).String(), " ", unbroken) }

// failed is a check that could not be made.
func failed(name string, err error) check {
	return degraded(name, oneLine(err), remedyOf(err))
}

func switchedOff(name string) check {
	return off(name, "switched off by "+disableVariable, "")
}

const disableVariable = "WEIR_DISABLE"

// disableWords are the words of WEIR_DISABLE, as package weir reads it.
func (e *exam) disableWords() []string {
	return strings.FieldsFunc(e.disable, func(r rune) bool { return r == ',' || r == ' ' })
}

func (e *exam) disables(word string) bool { return slices.Contains(e.disableWords(), word) }

// errnoName has the names that people look for in a seccomp profile.
func errnoName(err error) string {
	switch {
	case errors.Is(err, syscall.EPERM):
		return "EPERM"
	case errors.Is(err, syscall.ENOSYS):
		return "ENOSYS"
	default:
		return oneLine(err)
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
