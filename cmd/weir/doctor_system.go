package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirnet/weir"
)

// kernel names the system.
func (e *exam) kernel() string {
	release, err := e.read("sys/kernel/osrelease")
	if err != nil || e.goos != "linux" {
		return e.goos
	}
	return "Linux " + release
}

const (
	wantedBuffer = 7 << 20   // what quic-go asks for, in both directions
	tinyBuffer   = 128 << 10 // less than any Linux has by default
)

// buffers asks for what QUIC wants, and looks at what is granted.
func (e *exam) buffers(ctx context.Context) []check {
	o, err := e.try(ctx, trial{
		to:     weir.UDPConfig{RecvBufferBytes: wantedBuffer, SendBufferBytes: wantedBuffer},
		enough: func(*outcome) bool { return true },
	})
	if err != nil {
		return []check{failed("receive_buffer", err), failed("send_buffer", err)}
	}
	// The kernel doubles what it is asked for, to account for its own overhead; the default it does not.
	return []check{
		e.buffer("receive_buffer", "net.core.rmem", o.receiver.RecvBufferBytes/2, o.sender.RecvBufferBytes),
		e.buffer("send_buffer", "net.core.wmem", o.receiver.SendBufferBytes/2, o.sender.SendBufferBytes),
	}
}

// buffer judges one direction. sysctl is the name of its limits, less the ending.
func (e *exam) buffer(name, sysctl string, granted, byDefault int) check {
	limit := e.number("sys/" + strings.ReplaceAll(sysctl, ".", "/") + "_max") // 0: not known
	raise := fmt.Sprintf("sysctl -w %s_max=%d", sysctl, wantedBuffer)
	if granted == 0 { // not told
		granted, byDefault = limit, e.number("sys/"+strings.ReplaceAll(sysctl, ".", "/")+"_default")
	}
	has := fmt.Sprintf("a socket has %s, and can have %s", bytesText(byDefault), bytesText(granted))
	switch {
	case granted == 0:
		return note(name, "the system does not tell its size", "")
	case granted < tinyBuffer:
		return degraded(name, fmt.Sprintf("%s (%s_max): less than Linux has by default", has, sysctl), raise)
	case byDefault < tinyBuffer:
		return degraded(name, fmt.Sprintf("%s: by default less than Linux has (%s_default)", has, sysctl),
			fmt.Sprintf("sysctl -w %s_default=212992, or UDPConfig's buffer sizes", sysctl))
	case granted < wantedBuffer:
		return note(name, fmt.Sprintf("%s (%s_max); QUIC wants 7 MiB", has, sysctl), "for QUIC: "+raise)
	case limit > 0 && limit < wantedBuffer:
		return note(name, fmt.Sprintf("%s, as it is privileged; others can have %s (%s_max)", has, bytesText(limit), sysctl),
			"for QUIC without privileges: "+raise)
	default:
		return on(name, has+" or more")
	}
}

// number is what a file holds, or 0.
func (e *exam) number(name string) int {
	text, err := e.read(name)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(text)
	return n
}

// bytesText is a size as people say it.
func bytesText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d%sMiB", n>>20, unbroken)
	case n >= 10<<20:
		return fmt.Sprintf("%.1f%sMiB", float64(n)/(1<<20), unbroken)
	default:
		return fmt.Sprintf("%d%sKiB", n>>10, unbroken)
	}
}

const (
	fewFiles   = 1024 // what Linux gives a process that nobody thought of
	raiseFiles = "ulimit -n 65536, or LimitNOFILE= of the systemd unit"
)

// openFiles is about descriptors: a loop has two, a socket one.
func (e *exam) openFiles() check {
	const name = "open_files"
	soft, hard, err := e.fileLimit()
	switch {
	case err != nil:
		return off(name, oneLine(err), "")
	case soft < fewFiles:
		return degraded(name, fmt.Sprintf("%s (hard limit %s); each socket takes one, each loop two", limitText(soft), limitText(hard)), raiseFiles)
	default:
		return on(name, fmt.Sprintf("%s (hard limit %s)", limitText(soft), limitText(hard)))
	}
}

func limitText(n uint64) string {
	if n >= 1<<62 {
		return "unlimited"
	}
	return grouped(n)
}

// seccomp tells whether a filter is there. What it refuses shows in the other lines.
func (e *exam) seccomp() check {
	const name = "seccomp"
	if e.goos != "linux" {
		return off(name, "there is none on "+e.goos, "")
	}
	text, err := e.read("self/status")
	if err != nil {
		return note(name, oneLine(err), "")
	}
	for line := range strings.Lines(text) {
		mode, found := strings.CutPrefix(line, "Seccomp:")
		if !found {
			continue
		}
		switch mode = strings.TrimSpace(mode); mode {
		case "0":
			return note(name, "no filter", "")
		case "2":
			return note(name, "a filter (mode 2); what it refuses shows in the lines above", "")
		default:
			return note(name, "mode "+mode, "")
		}
	}
	return note(name, "the kernel does not tell", "")
}

// disabled is about WEIR_DISABLE itself.
func (e *exam) disabled() check {
	const name = "weir_disable"
	words := e.disableWords()
	for _, word := range words {
		switch word {
		case "gso", "gro", "mmsg":
		default:
			return degraded(name, fmt.Sprintf("%s names %q; it can name gso, gro and mmsg", disableVariable, word), "unset "+disableVariable)
		}
	}
	if len(words) == 0 {
		return note(name, "nothing is switched off", "")
	}
	return note(name, disableVariable+" switches off "+strings.Join(words, ", "), "to use them: unset "+disableVariable)
}
