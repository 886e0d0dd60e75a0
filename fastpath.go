package weir

import (
	"log/slog"
)

// fastPaths are those that were lost, until that is told: a handler of logs is the user's, who may send on a socket in
// it, so it is called where the loop is in the middle of nothing. Loop only.
type fastPaths struct {
	single  bool // receives take one message a system call
	noRecv  bool // told of
	noSend  bool // told of
	noFile  bool // told of
	waiting []lostPath
}

type lostPath struct {
	path   string
	why    error
	source string
}

// lost notes that a fast path is off, which costs speed and nothing else.
func (f *fastPaths) lost(path string, why error, source string) {
	f.waiting = append(f.waiting, lostPath{path, why, source})
}

// lostSendFile notes, once, that a file had to be read and written.
func (f *fastPaths) lostSendFile(why error, source string) {
	if !f.noFile {
		f.noFile = true
		f.lost("sendfile", why, source)
	}
}

// tellLostPaths logs what was lost since it was last called, batched calls included.
func (l *Loop) tellLostPaths() {
	f := &l.fast
	recv, send := l.kernel.Unbatched()
	f.single = recv != nil
	if recv != nil && !f.noRecv && !l.cfg.NoBatches {
		f.noRecv = true
		f.lost("recvmmsg", recv, "loop")
	}
	if send != nil && !f.noSend && !l.cfg.NoBatches {
		f.noSend = true
		f.lost("sendmmsg", send, "loop")
	}
	waiting := f.waiting
	f.waiting = nil
	for _, p := range waiting {
		l.cfg.Logger.Warn("weir: fast path lost", slog.String("path", p.path), slog.Any("reason", p.why),
			slog.String("source", p.source))
	}
}
