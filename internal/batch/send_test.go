package batch

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirnet/weir/internal/sys"
)

// A message is written as the numbers of its datagrams: "4", a train "4+5+6", with a traffic class "4+5/tc". Each
// datagram is three bytes, or two if it is written "6-", as the last of a train may be. All go to the address
// of the first number.

const testClass = 0x2

// push queues messages that are written with blanks between them.
func push(q *Queue, messages string) {
	for text := range strings.FieldsSeq(messages) {
		numbers, class, _ := strings.Cut(text, "/")
		m := sys.Message{}
		if class != "" {
			m.Control.TrafficClass, m.Control.HasTrafficClass = testClass, true
		}
		for i, d := range strings.Split(numbers, "+") {
			digits, short := strings.CutSuffix(d, "-")
			n, _ := strconv.Atoi(digits)
			payload := []byte{byte(n), ^byte(n), 7}
			if short {
				payload = payload[:2]
			}
			m.Buf = append(m.Buf, payload...)
			if i == 0 {
				m.Addr = addrOf(n)
			} else {
				m.Control.Segment = 3
			}
		}
		q.Push(&m)
	}
}

// numbersOf takes the datagrams of a payload apart, and fails on one that is none.
func numbersOf(payload []byte) (numbers []int, text string) {
	for len(payload) > 0 {
		d := payload[:min(3, len(payload))]
		if len(d) < 2 || d[1] != ^d[0] {
			return nil, fmt.Sprintf("%x", payload)
		}
		if text != "" {
			text += "+"
		}
		text += strconv.Itoa(int(d[0]))
		if len(d) == 2 {
			text += "-"
		}
		numbers = append(numbers, int(d[0]))
		payload = payload[len(d):]
	}
	return numbers, text
}

// written is how a message that is to be sent is written.
func written(m *sys.Message) string {
	numbers, text := numbersOf(m.Buf)
	switch want := (sys.Control{TrafficClass: testClass, HasTrafficClass: true}); {
	case (len(numbers) > 1) != (m.Control.Segment == 3) || len(numbers) < 2 && m.Control.Segment != 0:
		return text + fmt.Sprintf("/segment %d", m.Control.Segment)
	case m.Control.HasTrafficClass && m.Control.TrafficClass == want.TrafficClass:
		return text + "/tc"
	case m.Control.TrafficClass != 0 || m.Control.HasTrafficClass:
		return text + "/other"
	}
	return text
}

var errnoNames = map[error]string{
	syscall.EAGAIN: "EAGAIN", syscall.EBADF: "EBADF", syscall.EPERM: "EPERM", syscall.ENOBUFS: "ENOBUFS",
	syscall.EIO: "EIO", syscall.EINVAL: "EINVAL", syscall.EMSGSIZE: "EMSGSIZE", syscall.EACCES: "EACCES",
	syscall.ECONNREFUSED: "ECONNREFUSED", syscall.EHOSTUNREACH: "EHOSTUNREACH",
}

// answers are what a kernel answers to messages as they are written.
type answers map[string]error

// scripted is a kernel that refuses some messages, and logs what it is asked and what the hooks are told.
type scripted struct {
	always answers
	once   map[string][]error // before that; only of the first message of a call
	atOnce int                // at most so many messages a call; 0: any
	full   string             // EAGAIN before this message, whatever else it is answered
	log    []string
}

func (k *scripted) Send(fd int, b *sys.SendBatch, from, to int) (int, error) {
	if fd != 7 || from < 0 || from >= to || to > len(b.Msgs) {
		panic(fmt.Sprintf("Send(%d, %d messages, %d, %d)", fd, len(b.Msgs), from, to))
	}
	var taken []string
	for i := from; i < to; i++ {
		text := written(&b.Msgs[i])
		err := k.always[text]
		if text == k.full {
			err = syscall.EAGAIN
		}
		if once := k.once[text]; len(once) > 0 && i == from {
			err, k.once[text] = once[0], once[1:]
		}
		if err != nil && i == from {
			k.log = append(k.log, text+" "+errnoNames[err])
			return 0, err
		}
		if err != nil || k.atOnce > 0 && i-from == k.atOnce {
			break // sendmmsg(2) forgets why
		}
		taken = append(taken, text)
	}
	k.log = append(k.log, strings.Join(taken, " "))
	return len(taken), nil
}

// hooks log what they are told.
func (k *scripted) hooks() *Hooks {
	about := func(what string) func(*Train, error) {
		return func(t *Train, err error) {
			_, text := numbersOf(t.Payload)
			if what == "no segments:" {
				text = fmt.Sprintf("%v of %d", t.Addr, t.Control.Segment) // the payload is not to be read
			}
			k.log = append(k.log, what+" "+text+" "+errnoNames[err])
		}
	}
	return &Hooks{
		Lost:           about("lost:"),
		Retry:          func() int { k.log = append(k.log, "retry"); return 0 },
		Stale:          func(err error) { k.log = append(k.log, "stale: "+errnoNames[err]) },
		NoSegments:     about("no segments:"),
		NoTrafficClass: about("no traffic class:"),
	}
}

// span is how datagrams from one number up to another are written.
func span(from, to int) string {
	var s []string
	for i := from; i < to; i++ {
		s = append(s, strconv.Itoa(i))
	}
	return strings.Join(s, " ")
}

func TestFlush(t *testing.T) {
	t.Parallel()
	type failures = [classes]int
	for _, row := range []struct {
		name   string
		queued string
		kernel scripted
		log    string // lines
		want   Sent
		left   string
	}{
		{name: "nothing"},
		{name: "one call", queued: span(0, 8), log: span(0, 8), want: Sent{Calls: 1, Datagrams: 8, Bytes: 24}},
		{name: "more than a call takes", queued: span(0, 20),
			log:  span(0, 8) + "\n" + span(8, 16) + "\n" + span(16, 20),
			want: Sent{Calls: 3, Datagrams: 20, Bytes: 60}},
		{name: "a kernel that takes less than it is given", queued: span(0, 8), kernel: scripted{atOnce: 3},
			log:  "0 1 2\n3 4 5\n6 7",
			want: Sent{Calls: 3, Datagrams: 8, Bytes: 24}},

		{name: "the first fails", queued: "0 1 2", kernel: scripted{always: answers{"0": syscall.EPERM}},
			log:  "0 EPERM\nlost: 0 EPERM\n1 2",
			want: Sent{Calls: 2, Datagrams: 2, Bytes: 6, Failed: failures{Lost: 1}, Answers: failures{Lost: 1}}},
		{name: "one in the middle fails", queued: "0 1 2 3", kernel: scripted{always: answers{"2": syscall.EINVAL}},
			log:  "0 1\n2 EINVAL\nlost: 2 EINVAL\n3",
			want: Sent{Calls: 3, Datagrams: 3, Bytes: 9, Failed: failures{Caller: 1}, Answers: failures{Caller: 1}}},
		{name: "the last fails", queued: "0 1 2", kernel: scripted{always: answers{"2": syscall.ENOBUFS}},
			log:  "0 1\n2 ENOBUFS\nlost: 2 ENOBUFS",
			want: Sent{Calls: 2, Datagrams: 2, Bytes: 6, Failed: failures{Lost: 1}, Answers: failures{Lost: 1}}},
		{name: "two in a row and one in another batch fail", queued: span(0, 12),
			kernel: scripted{always: answers{"2": syscall.EPERM, "3": syscall.EINVAL, "9": syscall.EIO}},
			log: "0 1\n2 EPERM\nlost: 2 EPERM\n3 EINVAL\nlost: 3 EINVAL\n4 5 6 7\n" +
				"8\n9 EIO\nlost: 9 EIO\n10 11",
			want: Sent{Calls: 7, Datagrams: 9, Bytes: 27, Failed: failures{Lost: 2, Caller: 1}, Answers: failures{Lost: 2, Caller: 1}}},
		{name: "all fail", queued: "0 1",
			kernel: scripted{always: answers{"0": syscall.EPERM, "1": syscall.EIO}},
			log:    "0 EPERM\nlost: 0 EPERM\n1 EIO\nlost: 1 EIO",
			want:   Sent{Calls: 2, Failed: failures{Lost: 2}, Answers: failures{Lost: 2}}},

		{name: "full at once", queued: "0 1", kernel: scripted{full: "0"},
			log:  "0 EAGAIN",
			want: Sent{Calls: 1, Blocked: true, Answers: failures{Wait: 1}}, left: "0 1"},
		{name: "full in the middle", queued: span(0, 20), kernel: scripted{full: "11"},
			log:  span(0, 8) + "\n8 9 10\n11 EAGAIN",
			want: Sent{Calls: 3, Datagrams: 11, Bytes: 33, Blocked: true, Answers: failures{Wait: 1}}, left: span(11, 20)},
		{name: "full behind one that fails", queued: "0 1 2 3 4", kernel: scripted{full: "3", always: answers{"1": syscall.EPERM}},
			log: "0\n1 EPERM\nlost: 1 EPERM\n2\n3 EAGAIN",
			want: Sent{Calls: 4, Datagrams: 2, Bytes: 6, Blocked: true,
				Failed: failures{Lost: 1}, Answers: failures{Lost: 1, Wait: 1}}, left: "3 4"},
		{name: "dead", queued: "0 1", kernel: scripted{always: answers{"0": syscall.EBADF}},
			log:  "0 EBADF",
			want: Sent{Calls: 1, Dead: syscall.EBADF, Answers: failures{Dead: 1}}, left: "0 1"},
		{name: "dead in the middle", queued: span(0, 12), kernel: scripted{always: answers{"9": syscall.EBADF}},
			log:  span(0, 8) + "\n8\n9 EBADF",
			want: Sent{Calls: 3, Datagrams: 9, Bytes: 27, Dead: syscall.EBADF, Answers: failures{Dead: 1}}, left: "9 10 11"},

		{name: "a stale error costs no datagram", queued: "0 1 2",
			kernel: scripted{once: map[string][]error{"0": {syscall.ECONNREFUSED}}},
			log:    "0 ECONNREFUSED\nretry\n0 1 2\nstale: ECONNREFUSED",
			want:   Sent{Calls: 2, Datagrams: 3, Bytes: 9, Answers: failures{Stale: 1}}},
		{name: "one that stays is the datagram's own", queued: "0 1 2",
			kernel: scripted{always: answers{"1": syscall.EHOSTUNREACH}},
			log:    "0\n1 EHOSTUNREACH\nretry\n1 EHOSTUNREACH\nlost: 1 EHOSTUNREACH\n2",
			want: Sent{Calls: 4, Datagrams: 2, Bytes: 6,
				Failed: failures{Lost: 1}, Answers: failures{Stale: 1, Lost: 1}}},
		{name: "a datagram that is too large", queued: "0 1", kernel: scripted{always: answers{"0": syscall.EMSGSIZE}},
			log: "0 EMSGSIZE\nretry\n0 EMSGSIZE\nlost: 0 EMSGSIZE\n1",
			want: Sent{Calls: 3, Datagrams: 1, Bytes: 3,
				Failed: failures{Size: 1}, Answers: failures{Stale: 1, Size: 1}}},
		{name: "two that are refused in a row, each tried twice", queued: "0 1",
			kernel: scripted{always: answers{"0": syscall.EACCES, "1": syscall.EACCES}},
			log: "0 EACCES\nretry\n0 EACCES\nlost: 0 EACCES\n" +
				"1 EACCES\nretry\n1 EACCES\nlost: 1 EACCES",
			want: Sent{Calls: 4, Failed: failures{Caller: 2}, Answers: failures{Stale: 2, Caller: 2}}},
		{name: "a stale error before one of the datagram's", queued: "0 1",
			kernel: scripted{once: map[string][]error{"0": {syscall.ECONNREFUSED}}, always: answers{"0": syscall.EPERM}},
			log:    "0 ECONNREFUSED\nretry\n0 EPERM\nstale: ECONNREFUSED\nlost: 0 EPERM\n1",
			want: Sent{Calls: 3, Datagrams: 1, Bytes: 3,
				Failed: failures{Lost: 1}, Answers: failures{Stale: 1, Lost: 1}}},
		{name: "a stale error before another that stays", queued: "0",
			kernel: scripted{once: map[string][]error{"0": {syscall.ECONNREFUSED}}, always: answers{"0": syscall.EHOSTUNREACH}},
			log:    "0 ECONNREFUSED\nretry\n0 EHOSTUNREACH\nstale: ECONNREFUSED\nlost: 0 EHOSTUNREACH",
			want:   Sent{Calls: 2, Failed: failures{Lost: 1}, Answers: failures{Stale: 1, Lost: 1}}},
		{name: "a stale error, then full", queued: "0 1",
			kernel: scripted{full: "0", once: map[string][]error{"0": {syscall.ECONNREFUSED}}},
			log:    "0 ECONNREFUSED\nretry\n0 EAGAIN\nstale: ECONNREFUSED",
			want:   Sent{Calls: 2, Blocked: true, Answers: failures{Stale: 1, Wait: 1}}, left: "0 1"},
		{name: "a stale error, then dead", queued: "0 1",
			kernel: scripted{always: answers{"0": syscall.EBADF}, once: map[string][]error{"0": {syscall.ECONNREFUSED}}},
			log:    "0 ECONNREFUSED\nretry\n0 EBADF\nstale: ECONNREFUSED",
			want:   Sent{Calls: 2, Dead: syscall.EBADF, Answers: failures{Stale: 1, Dead: 1}}, left: "0 1"},

		{name: "trains pass whole", queued: "0 1+2+3 4+5- 6",
			log:  "0 1+2+3 4+5- 6",
			want: Sent{Calls: 1, Datagrams: 7, Bytes: 20, Joined: 5}},
		{name: "a stale error costs no train", queued: "0+1", kernel: scripted{once: map[string][]error{"0+1": {syscall.EMSGSIZE}}},
			log:  "0+1 EMSGSIZE\nretry\n0+1\nstale: EMSGSIZE",
			want: Sent{Calls: 2, Datagrams: 2, Bytes: 6, Joined: 2, Answers: failures{Stale: 1}}},
		{name: "a train that the device cannot cut", queued: "0 1+2+3- 4", kernel: scripted{always: answers{"1+2+3-": syscall.EIO}},
			log:  "0\n1+2+3- EIO\n1 2 3-\nno segments: " + addrOf(1).String() + " of 3 EIO\n4",
			want: Sent{Calls: 4, Datagrams: 5, Bytes: 14, Answers: failures{Offload: 1}}},
		{name: "a train of too large segments", queued: "1+2", kernel: scripted{always: answers{"1+2": syscall.EMSGSIZE}},
			log:  "1+2 EMSGSIZE\nretry\n1+2 EMSGSIZE\n1 2\nno segments: " + addrOf(1).String() + " of 3 EMSGSIZE",
			want: Sent{Calls: 3, Datagrams: 2, Bytes: 6, Answers: failures{Stale: 1, Offload: 1}}},
		{name: "a train with more datagrams than a call takes", queued: strings.ReplaceAll(span(0, 10), " ", "+"),
			kernel: scripted{always: answers{strings.ReplaceAll(span(0, 10), " ", "+"): syscall.EINVAL}},
			log: strings.ReplaceAll(span(0, 10), " ", "+") + " EINVAL\n" + span(0, 8) + "\n8 9\n" +
				"no segments: " + addrOf(0).String() + " of 3 EINVAL",
			want: Sent{Calls: 3, Datagrams: 10, Bytes: 30, Answers: failures{Offload: 1}}},
		{name: "two trains that the device cannot cut", queued: "0+1 2+3",
			kernel: scripted{always: answers{"0+1": syscall.EIO, "2+3": syscall.EIO}},
			log: "0+1 EIO\n0 1\nno segments: " + addrOf(0).String() + " of 3 EIO\n" +
				"2+3 EIO\n2 3\nno segments: " + addrOf(2).String() + " of 3 EIO",
			want: Sent{Calls: 4, Datagrams: 4, Bytes: 12, Answers: failures{Offload: 2}}},
		{name: "a train whose datagrams fail alike", queued: "9 0+1 2",
			kernel: scripted{always: answers{"0+1": syscall.EINVAL, "0": syscall.EINVAL, "1": syscall.EINVAL}},
			log:    "9\n0+1 EINVAL\n0 EINVAL\nlost: 0 EINVAL\n1 EINVAL\nlost: 1 EINVAL\n2",
			want: Sent{Calls: 5, Datagrams: 2, Bytes: 6,
				Failed: failures{Caller: 2}, Answers: failures{Offload: 1, Caller: 2}}},
		{name: "a train of which one datagram passes", queued: "0+1",
			kernel: scripted{always: answers{"0+1": syscall.EINVAL, "0": syscall.EPERM}},
			log:    "0+1 EINVAL\n0 EPERM\nlost: 0 EPERM\n1\nno segments: " + addrOf(0).String() + " of 3 EINVAL",
			want: Sent{Calls: 3, Datagrams: 1, Bytes: 3,
				Failed: failures{Lost: 1}, Answers: failures{Offload: 1, Lost: 1}}},
		{name: "a train that is too large but for its last", queued: "0+1-/tc",
			kernel: scripted{always: answers{"0+1-/tc": syscall.EMSGSIZE, "0/tc": syscall.EMSGSIZE, "0": syscall.EMSGSIZE}},
			log: "0+1-/tc EMSGSIZE\nretry\n0+1-/tc EMSGSIZE\n" +
				"0/tc EMSGSIZE\nretry\n0/tc EMSGSIZE\n0 EMSGSIZE\nretry\n0 EMSGSIZE\nlost: 0 EMSGSIZE\n1-/tc",
			want: Sent{Calls: 7, Datagrams: 1, Bytes: 2,
				Failed: failures{Size: 1}, Answers: failures{Stale: 3, Offload: 2, Size: 1}}},

		{name: "a traffic class", queued: "0/tc 1 2+3/tc", log: "0/tc 1 2+3/tc",
			want: Sent{Calls: 1, Datagrams: 4, Bytes: 12, Joined: 2}},
		{name: "a traffic class that is refused", queued: "0 1/tc 2/tc 3", kernel: scripted{always: answers{"1/tc": syscall.EIO}},
			log:  "0\n1/tc EIO\n1 2/tc 3\nno traffic class: 1 EIO",
			want: Sent{Calls: 3, Datagrams: 4, Bytes: 12, Answers: failures{Offload: 1}}},
		{name: "a traffic class that is refused, of one that is refused without", queued: "0/tc 1",
			kernel: scripted{always: answers{"0/tc": syscall.EINVAL, "0": syscall.EINVAL}},
			log:    "0/tc EINVAL\n0 EINVAL\nlost: 0 EINVAL\n1",
			want: Sent{Calls: 3, Datagrams: 1, Bytes: 3,
				Failed: failures{Caller: 1}, Answers: failures{Offload: 1, Caller: 1}}},
		{name: "a traffic class that is refused, and a stale error", queued: "0/tc",
			kernel: scripted{always: answers{"0/tc": syscall.EINVAL}, once: map[string][]error{"0": {syscall.ECONNREFUSED}}},
			log:    "0/tc EINVAL\n0 ECONNREFUSED\nretry\n0\nstale: ECONNREFUSED\nno traffic class: 0 EINVAL",
			want:   Sent{Calls: 3, Datagrams: 1, Bytes: 3, Answers: failures{Offload: 1, Stale: 1}}},
		{name: "a traffic class that is refused, then full", queued: "0/tc 1",
			kernel: scripted{full: "0", always: answers{"0/tc": syscall.EINVAL}},
			log:    "0/tc EINVAL\n0 EAGAIN",
			want:   Sent{Calls: 2, Blocked: true, Answers: failures{Offload: 1, Wait: 1}}, left: "0/tc 1"},
		{name: "a traffic class that is refused of a train", queued: "0+1/tc 2",
			kernel: scripted{always: answers{"0+1/tc": syscall.EIO, "0/tc": syscall.EIO, "1/tc": syscall.EIO}},
			log: "0+1/tc EIO\n0/tc EIO\n0\nno traffic class: 0 EIO\n" +
				"1/tc EIO\n1\nno traffic class: 1 EIO\n2",
			want: Sent{Calls: 6, Datagrams: 3, Bytes: 9, Answers: failures{Offload: 3}}},
		{name: "a train with a traffic class that is refused for being a train", queued: "0+1/tc 2",
			kernel: scripted{always: answers{"0+1/tc": syscall.EIO}},
			log:    "0+1/tc EIO\n0/tc 1/tc\nno segments: " + addrOf(0).String() + " of 3 EIO\n2",
			want:   Sent{Calls: 3, Datagrams: 3, Bytes: 9, Answers: failures{Offload: 1}}},

		{name: "a train that is lost", queued: "0 1+2+3- 4", kernel: scripted{always: answers{"1+2+3-": syscall.EPERM}},
			log: "0\n1+2+3- EPERM\nlost: 1+2+3- EPERM\n4",
			want: Sent{Calls: 3, Datagrams: 2, Bytes: 6,
				Failed: failures{Lost: 3}, Answers: failures{Lost: 1}}},
		{name: "a train for which there is no memory", queued: "0+1/tc", kernel: scripted{always: answers{"0+1/tc": syscall.ENOBUFS}},
			log:  "0+1/tc ENOBUFS\nlost: 0+1 ENOBUFS",
			want: Sent{Calls: 1, Failed: failures{Lost: 2}, Answers: failures{Lost: 1}}},
		{name: "full before a train", queued: "0+1 2", kernel: scripted{full: "0+1"},
			log:  "0+1 EAGAIN",
			want: Sent{Calls: 1, Blocked: true, Answers: failures{Wait: 1}}, left: "0+1 2"},
		{name: "full in the middle of a train's datagrams", queued: "0+1+2+3 4",
			kernel: scripted{full: "2", always: answers{"0+1+2+3": syscall.EIO}},
			log:    "0+1+2+3 EIO\n0 1\n2 EAGAIN\nno segments: " + addrOf(0).String() + " of 3 EIO",
			want: Sent{Calls: 3, Datagrams: 2, Bytes: 6, Blocked: true,
				Answers: failures{Offload: 1, Wait: 1}}, left: "2+3 4"},
		{name: "full before a train's last datagram", queued: "0+1 2",
			kernel: scripted{full: "1", always: answers{"0+1": syscall.EIO}},
			log:    "0+1 EIO\n0\n1 EAGAIN\nno segments: " + addrOf(0).String() + " of 3 EIO",
			want: Sent{Calls: 3, Datagrams: 1, Bytes: 3, Blocked: true,
				Answers: failures{Offload: 1, Wait: 1}}, left: "1 2"},
		{name: "full before a train's first datagram", queued: "0+1 2",
			kernel: scripted{full: "0", always: answers{"0+1": syscall.EIO}},
			log:    "0+1 EIO\n0 EAGAIN",
			want:   Sent{Calls: 2, Blocked: true, Answers: failures{Offload: 1, Wait: 1}}, left: "0+1 2"},
		{name: "dead in the middle of a train's datagrams", queued: "0+1+2 3",
			kernel: scripted{always: answers{"0+1+2": syscall.EIO, "1": syscall.EBADF}},
			log:    "0+1+2 EIO\n0\n1 EBADF\nno segments: " + addrOf(0).String() + " of 3 EIO",
			want: Sent{Calls: 3, Datagrams: 1, Bytes: 3, Dead: syscall.EBADF,
				Answers: failures{Offload: 1, Dead: 1}}, left: "1+2 3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var pool Pool
			q := NewQueue(&pool)
			push(&q, row.queued)
			k := row.kernel
			got := Flush(&k, 7, sys.NewSendBatch(8), &q, k.hooks())
			if got != row.want {
				t.Errorf("Flush: %+v\nwant:  %+v", got, row.want)
			}
			if log := strings.Join(k.log, "\n"); log != row.log {
				t.Errorf("log:\n%s\nwant:\n%s", log, row.log)
			}
			if left := leftIn(&q); left != row.left {
				t.Errorf("left are %q, want %q", left, row.left)
			}
		})
	}
}

// leftIn is what a queue holds.
func leftIn(q *Queue) string {
	var s []string
	for i := range q.Trains() {
		t := q.At(i)
		s = append(s, written(&sys.Message{Buf: t.Payload, Control: t.Control}))
	}
	return strings.Join(s, " ")
}

// TestFlushGoesOn: what a full socket left goes out with the next flush, once and in order.
func TestFlushGoesOn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		queued string
		kernel scripted
		log    string // of the second flush
		want   Sent
	}{
		{"behind a stale error", "0 1", scripted{full: "0", once: map[string][]error{"0": {syscall.ECONNREFUSED}}},
			"0 1", Sent{Calls: 1, Datagrams: 2, Bytes: 6}},
		{"in the middle of a refused train", "0+1+2+3 4",
			scripted{full: "2", always: answers{"0+1+2+3": syscall.EIO, "2+3": syscall.EIO}},
			"2+3 EIO\n2 3\nno segments: " + addrOf(0).String() + " of 3 EIO\n4",
			Sent{Calls: 3, Datagrams: 3, Bytes: 9, Answers: [classes]int{Offload: 1}}},
		{"behind a traffic class that is refused", "0/tc 1", scripted{full: "0", always: answers{"0/tc": syscall.EIO}},
			"0/tc EIO\n0 1\nno traffic class: 0 EIO",
			Sent{Calls: 2, Datagrams: 2, Bytes: 6, Answers: [classes]int{Offload: 1}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var pool Pool
			q := NewQueue(&pool)
			push(&q, row.queued)
			k := row.kernel
			scratch := sys.NewSendBatch(8)
			if first := Flush(&k, 7, scratch, &q, k.hooks()); !first.Blocked {
				t.Fatalf("Flush: %+v", first)
			}
			k.full, k.log = "", nil
			if got := Flush(&k, 7, scratch, &q, k.hooks()); got != row.want {
				t.Errorf("Flush: %+v\nwant:  %+v", got, row.want)
			}
			if log := strings.Join(k.log, "\n"); log != row.log {
				t.Errorf("log:\n%s\nwant:\n%s", log, row.log)
			}
			if q.Len() != 0 {
				t.Errorf("left are %q", leftIn(&q))
			}
		})
	}
}

// TestFlushAddresses: each datagram of a train goes where the train goes, and its control with it.
func TestFlushAddresses(t *testing.T) {
	t.Parallel()
	control := sys.Control{Local: ipOf(9), Interface: 3, TrafficClass: testClass, HasTrafficClass: true}
	var pool Pool
	q := NewQueue(&pool)
	m := train(1, 300, 100)
	m.Control.Local, m.Control.Interface, m.Control.TrafficClass, m.Control.HasTrafficClass = ipOf(9), 3, testClass, true
	q.Push(m)
	var sent []sys.Message
	k := sendFunc(func(b *sys.SendBatch, from, to int) (int, error) {
		if b.Msgs[from].Control.Segment > 0 {
			return 0, syscall.EIO
		}
		sent = append(sent, b.Msgs[from:to]...)
		return to - from, nil
	})
	var blamed Train
	Flush(k, 7, sys.NewSendBatch(8), &q, &Hooks{NoSegments: func(t *Train, _ error) { blamed = *t }})
	if len(sent) != 3 {
		t.Fatalf("%d datagrams were sent", len(sent))
	}
	for i, m := range sent {
		if m.Addr != addrOf(1) || m.Control != control || cap(m.Buf) != 100 {
			t.Errorf("datagram %d of %d bytes for %v, %+v", i, cap(m.Buf), m.Addr, m.Control)
		}
	}
	control.Segment = 100
	if blamed.Addr != addrOf(1) || blamed.Control != control {
		t.Errorf("to blame is a train for %v, %+v", blamed.Addr, blamed.Control)
	}
}

// sendFunc is a Sender that is a function.
type sendFunc func(b *sys.SendBatch, from, to int) (int, error)

func (f sendFunc) Send(_ int, b *sys.SendBatch, from, to int) (int, error) { return f(b, from, to) }

func TestRefused(t *testing.T) {
	t.Parallel()
	s := Sent{Datagrams: 9, Failed: [classes]int{Size: 1, Lost: 2, Caller: 4}, Answers: [classes]int{Wait: 8, Lost: 16}}
	if got := s.Refused(); got != 7 {
		t.Errorf("%d are gone without having been sent, want 7", got)
	}
}

// policy is a kernel that refuses by destination and by datagram.
type policy struct {
	segments map[netip.AddrPort]error // trains for that destination
	class    map[netip.AddrPort]error // with a traffic class
	own      map[int]error            // a message with that datagram in it
	atOnce   int
	room     int // EAGAIN after so many messages
	stale    int // ECONNREFUSED of an earlier datagram, so many calls from now, where the last call did not fail

	calls   int
	failed  int   // calls
	passed  []int // datagrams
	joined  int
	bytes   int
	last    refusal   // of the last call
	refused []refusal // all of this flush
}

// refusal is a call that failed.
type refusal struct {
	sys.Message
	err error
}

func (k *policy) Send(_ int, b *sys.SendBatch, from, to int) (int, error) {
	k.calls++
	k.stale--
	for i := from; i < to; i++ {
		m := &b.Msgs[i]
		err := k.answer(m)
		if k.stale <= 0 && k.last.err == nil {
			k.stale, err = 1000, syscall.ECONNREFUSED
		}
		if err != nil && i == from {
			k.failed++
			k.last = refusal{*m, err}
			k.refused = append(k.refused, k.last)
			return 0, err
		}
		k.last = refusal{}
		if err != nil || k.atOnce > 0 && i-from == k.atOnce {
			return i - from, nil
		}
		numbers, _ := numbersOf(m.Buf)
		k.passed = append(k.passed, numbers...)
		k.bytes += len(m.Buf)
		if len(numbers) > 1 {
			k.joined += len(numbers)
		}
		k.room--
	}
	return to - from, nil
}

func (k *policy) answer(m *sys.Message) error {
	if m.Control.Segment > 0 && k.segments[m.Addr] != nil {
		return k.segments[m.Addr]
	}
	if m.Control.HasTrafficClass && k.class[m.Addr] != nil {
		return k.class[m.Addr]
	}
	numbers, _ := numbersOf(m.Buf)
	for _, n := range numbers {
		if err := k.own[n]; err != nil {
			return err
		}
	}
	if k.room <= 0 {
		return syscall.EAGAIN
	}
	return nil
}

// TestFlushModel: whatever the kernel refuses and whenever it is full, each datagram is sent, reported or kept,
// once and in order. What would pass in another form is not lost, and the hooks hear no untruth.
func TestFlushModel(t *testing.T) {
	t.Parallel()
	offload := []error{nil, nil, syscall.EIO, syscall.EINVAL, syscall.EMSGSIZE}
	own := []error{syscall.EMSGSIZE, syscall.EPERM, syscall.EINVAL, syscall.EIO, syscall.ECONNREFUSED, syscall.EACCES}
	rapid.Check(t, func(t *rapid.T) {
		k := policy{
			segments: map[netip.AddrPort]error{}, class: map[netip.AddrPort]error{}, own: map[int]error{},
			atOnce: rapid.IntRange(0, 9).Draw(t, "at once"),
		}
		var pool Pool
		q := NewQueue(&pool)
		queued := 0
		for range rapid.IntRange(0, 20).Draw(t, "messages") {
			size := rapid.SampledFrom([]int{1, 1, 2, 3, 9}).Draw(t, "datagrams")
			text := strings.ReplaceAll(span(queued, queued+size), " ", "+")
			if rapid.Bool().Draw(t, "shorter last") {
				text += "-"
			}
			if rapid.Bool().Draw(t, "traffic class") {
				text += "/tc"
			}
			push(&q, text)
			k.segments[addrOf(queued)] = rapid.SampledFrom(offload).Draw(t, "segments")
			k.class[addrOf(queued)] = rapid.SampledFrom(offload).Draw(t, "class")
			queued += size
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 179), 0, 10).Draw(t, "refused") {
			k.own[i] = rapid.SampledFrom(own).Draw(t, "errno")
		}

		var lost []int
		var failed, answers [classes]int // datagrams, calls
		hooks := Hooks{
			Lost: func(train *Train, err error) {
				numbers, _ := numbersOf(train.Payload)
				if k.last.err != err || &k.last.Buf[0] != &train.Payload[0] || train.Addr != k.last.Addr {
					t.Fatalf("lost %v for %v by %v; the kernel refused %x by %v", numbers, train.Addr, err, k.last.Buf, k.last.err)
				}
				for _, n := range numbers {
					if k.own[n] == nil && (len(numbers) == 1 || slices.Contains([]error{syscall.EIO, syscall.EINVAL, syscall.EMSGSIZE}, err)) {
						t.Fatalf("datagram %d was lost by %v, and would have passed", n, err)
					}
				}
				if len(numbers) != train.Len() {
					t.Fatalf("lost %v, a train of %d", numbers, train.Len())
				}
				lost = append(lost, numbers...)
				class := SendClass(err, Try{Again: true})
				failed[class] += len(numbers)
				answers[class]++
			},
			Retry: func() int { answers[Stale]++; return 0 },
			Stale: func(err error) {
				if err != syscall.ECONNREFUSED {
					t.Fatalf("%v was stale", err)
				}
			},
			NoSegments: func(train *Train, err error) {
				if !k.hasRefused(train.Addr, err, true) || train.Control.Segment != 3 {
					t.Fatalf("segments of %d are to blame for %v, for %v", train.Control.Segment, err, train.Addr)
				}
			},
			NoTrafficClass: func(train *Train, err error) {
				if k.class[train.Addr] != err || !k.hasRefused(train.Addr, err, false) {
					t.Fatalf("the traffic class is to blame for %v, for %v", err, train.Addr)
				}
			},
		}
		scratch := sys.NewSendBatch(rapid.IntRange(1, 16).Draw(t, "scratch"))
		total := Sent{}
		for q.Len() > 0 {
			k.room = rapid.IntRange(1, 30).Draw(t, "room")
			k.stale = rapid.IntRange(1, 6).Draw(t, "stale")
			k.refused = nil
			s := Flush(&k, 7, scratch, &q, &hooks)
			if s.Blocked != (q.Len() > 0) || s.Dead != nil {
				t.Fatalf("%+v with %d left", s, q.Len())
			}
			if s.Blocked {
				answers[Wait]++
			}
			total.Calls += s.Calls
			total.Datagrams += s.Datagrams
			total.Bytes += s.Bytes
			total.Joined += s.Joined
			for c := range classes {
				total.Failed[c] += s.Failed[c]
				total.Answers[c] += s.Answers[c]
			}
			done := append(slices.Clone(k.passed), lost...)
			slices.Sort(done)
			if len(done)+q.Len() != queued || !slices.IsSorted(k.passed) || !slices.IsSorted(lost) {
				t.Fatalf("sent %v, lost %v, %d left of %d", k.passed, lost, q.Len(), queued)
			}
			for i, n := range done {
				if i != n {
					t.Fatalf("sent %v, lost %v, %d left: not each once, and in order", k.passed, lost, q.Len())
				}
			}
		}
		answers[Offload] = k.failed - answers[Wait] - answers[Stale] - answers[Size] - answers[Lost] - answers[Caller]
		want := Sent{
			Calls: k.calls, Datagrams: len(k.passed), Bytes: k.bytes, Joined: k.joined, Failed: failed, Answers: answers,
		}
		if total != want || total.Refused() != len(lost) {
			t.Fatalf("counted %+v, %d refused\nwant    %+v, %d", total, total.Refused(), want, len(lost))
		}
		if kept(&pool) == 0 && queued > 0 {
			t.Fatal("no memory came back")
		}
	})
}

// hasRefused tells whether a message for that destination was refused in this flush, with that error.
func (k *policy) hasRefused(to netip.AddrPort, err error, train bool) bool {
	return slices.ContainsFunc(k.refused, func(r refusal) bool {
		return r.Addr == to && r.err == err && r.Control.Segment > 0 == train && (train || r.Control.HasTrafficClass)
	})
}

// TestFlushAllocations: a flush allocates nothing.
func TestFlushAllocations(t *testing.T) {
	var pool Pool
	q := NewQueue(&pool)
	scratch, hooks := sys.NewSendBatch(64), &Hooks{}
	cycle := func() { joinAndFlush(&q, scratch, hooks) }
	cycle()
	if n := testing.AllocsPerRun(20, cycle); n != 0 || q.Len() != 0 {
		t.Errorf("%v allocations, %d datagrams left", n, q.Len())
	}
}

// burst is a number of datagrams that a QUIC sender may have to send at once.
const burst = 200

var burstDatagram = datagram(1, 1200)

// takeAll is a kernel that has nothing to do.
type takeAll struct{}

func (takeAll) Send(_ int, _ *sys.SendBatch, from, to int) (int, error) { return to - from, nil }

func joinAndFlush(q *Queue, scratch *sys.SendBatch, hooks *Hooks) Sent {
	for range burst {
		if !q.Join(burstDatagram, NoLimit) {
			q.Push(burstDatagram)
		}
	}
	return Flush(takeAll{}, 7, scratch, q, hooks)
}

// BenchmarkJoinFlush queues and sends a burst of datagrams of one size for one destination.
func BenchmarkJoinFlush(b *testing.B) {
	var pool Pool
	q := NewQueue(&pool)
	scratch, hooks := sys.NewSendBatch(64), &Hooks{}
	b.SetBytes(burst * int64(len(burstDatagram.Buf)))
	b.ReportAllocs()
	for b.Loop() {
		if s := joinAndFlush(&q, scratch, hooks); s.Datagrams != burst {
			b.Fatalf("%+v", s)
		}
	}
}

// BenchmarkPushFlush does the same without joining.
func BenchmarkPushFlush(b *testing.B) {
	var pool Pool
	q := NewQueue(&pool)
	scratch, hooks := sys.NewSendBatch(64), &Hooks{}
	b.SetBytes(burst * int64(len(burstDatagram.Buf)))
	b.ReportAllocs()
	for b.Loop() {
		for range burst {
			q.Push(burstDatagram)
		}
		if s := Flush(takeAll{}, 7, scratch, &q, hooks); s.Datagrams != burst {
			b.Fatalf("%+v", s)
		}
	}
}

// TestFlushWhileReportsComeIn: as long as the error queue has reports, the next answer may be another's; but no
// datagram is tried for ever.
func TestFlushWhileReportsComeIn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		stale, reports int // answers before the datagram's turn comes, and how often the queue has something
		lost           bool
	}{
		{1, 0, false}, {2, 0, true}, {3, 2, false}, {3, 5, false}, {4, 2, true}, {maxTries, maxTries, false}, {maxTries + 1, 100, true},
	} {
		var pool Pool
		q := NewQueue(&pool)
		q.Push(&sys.Message{Buf: []byte("x"), Addr: addrOf(1)})
		k := staleKernel(row.stale)
		reports, lost := row.reports, false
		s := Flush(&k, 7, sys.NewSendBatch(1), &q, &Hooks{
			Lost:  func(*Train, error) { lost = true },
			Stale: func(error) {},
			Retry: func() int {
				if reports == 0 {
					return 0
				}
				reports--
				return 1
			},
		})
		if lost != row.lost || s.Datagrams+s.Refused() != 1 || q.Len() != 0 {
			t.Errorf("%+v: lost %v, %+v", row, lost, s)
		}
	}
}

// staleKernel answers that many sends with the errors of others.
type staleKernel int

func (k *staleKernel) Send(_ int, _ *sys.SendBatch, from, to int) (int, error) {
	if *k > 0 {
		*k--
		return 0, syscall.ECONNREFUSED
	}
	return to - from, nil
}
