package weir

import (
	"fmt"
	"log/slog"
	"strings"
)

// disableVariable is the environment's way to switch fast paths off.
const disableVariable = "WEIR_DISABLE"

// disable switches off what a list names.
func (c *Config) disable(list string) error {
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch word {
		case "gso":
			c.NoGSO = true
		case "gro":
			c.NoGRO = true
		case "mmsg":
			c.NoBatches = true
		default:
			return fmt.Errorf("weir: %s names %q; it can name gso, gro and mmsg", disableVariable, word)
		}
	}
	return nil
}

// fastPaths remembers what was told of already. Loop only.
type fastPaths struct {
	noRecvBatches, noSendBatches bool
}

// lookAtBatches tells, once, that batched calls turned out to be refused.
func (l *Loop) lookAtBatches() {
	if l.cfg.NoBatches || l.fast.noRecvBatches && l.fast.noSendBatches {
		return
	}
	recv, send := l.kernel.Unbatched()
	if recv != nil && !l.fast.noRecvBatches {
		l.fast.noRecvBatches = true
		l.logLostPath("recvmmsg", recv)
	}
	if send != nil && !l.fast.noSendBatches {
		l.fast.noSendBatches = true
		l.logLostPath("sendmmsg", send)
	}
}

// logLostPath tells that a fast path is off, which costs speed and nothing else.
func (l *Loop) logLostPath(path string, why error, attrs ...any) {
	attrs = append([]any{slog.String("path", path), slog.Any("reason", why)}, attrs...)
	l.cfg.Logger.Warn("weir: fast path lost", attrs...)
}
