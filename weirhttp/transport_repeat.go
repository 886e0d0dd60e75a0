package weirhttp

import (
	"errors"
	"net"
	"net/http"

	"github.com/quic-go/quic-go/http3"
)

// verdict is what is to be done with a request that failed.
type verdict uint8

const (
	verdictFail    verdict = iota // nothing
	verdictRepeat                 // send it again, on another connection
	verdictOverTCP                // send it again, over TCP
)

// judge tells whether a request that failed on a QUIC connection may be sent again.
func judge(req *http.Request, sent bool, err error) verdict {
	if req.Context().Err() != nil {
		return verdictFail // that says nothing of the connection, which others use: the request may have waited for a stream
	}
	if !sent {
		return verdictRepeat // "connection in graceful shutdown", or gone
	}
	if e, ok := errors.AsType[*http3.Error](err); ok && e.Remote {
		switch e.ErrorCode {
		case http3.ErrCodeRequestRejected: // "without performing any application processing", RFC 9114 section 8.1
			return verdictRepeat
		case http3.ErrCodeVersionFallback: // "the peer should retry over HTTP/1.1"
			return verdictOverTCP
		}
	}
	if errors.Is(err, net.ErrClosed) && isIdempotent(req) { // the connection ended, not the stream
		return verdictRepeat
	}
	return verdictFail
}

// isIdempotent tells that a request may be processed twice (RFC 9110 section 9.2.2).
func isIdempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header["Idempotency-Key"] != nil || req.Header["X-Idempotency-Key"] != nil // as net/http has it
}

// rewind has the request that is sent begin with its body's first byte again. The body that it had is closed by whom it was
// given to.
func (x *exchange) rewind() bool {
	if x.send.Body == nil || x.send.Body == http.NoBody {
		return true
	}
	if x.send.GetBody == nil {
		return false
	}
	body, err := x.send.GetBody()
	if err != nil {
		return false
	}
	again := *x.send
	again.Body = body
	x.send = &again
	return true
}
