package weirhttp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
)

// maxSends is how often a request is sent at most: the connection may have gone, and the next one, too.
const maxSends = 4

// exchange is a request on its way.
type exchange struct {
	core *transportCore
	key  originKey
	req  *http.Request // the program's
	send *http.Request // as it is sent, with a body of its own the second time
}

// roundTrip sends a request, over TCP or QUIC.
func (c *transportCore) roundTrip(req *http.Request) (*http.Response, error) {
	wanted, err := c.wantsHTTP3(req)
	if err != nil {
		closeRequestBody(req)
		return nil, err
	}
	x := &exchange{core: c, req: req, send: req}
	if !wanted {
		return x.overTCP()
	}
	x.key = originOf(req)
	for left := maxSends - 1; ; left-- {
		res, again, err := x.try(left > 0)
		if !again {
			return res, err
		}
		c.log.Debug("weirhttp: a request is sent again", slog.String("origin", x.key.String()), slog.Any("error", err))
		c.count(func(s *TransportStats) { s.Repeats++ })
	}
}

// wantsHTTP3 tells whether a request might go by HTTP/3, for all that it says itself.
func (c *transportCore) wantsHTTP3(req *http.Request) (bool, error) {
	switch {
	case c.mode == HTTP3Never, req.URL == nil, req.URL.Scheme != "https", req.URL.Host == "":
		return false, nil
	case c.mode == HTTP3Always:
		return true, checkRequest(req)
	case c.tcp.Proxy != nil:
		if proxy, err := c.tcp.Proxy(req); proxy != nil || err != nil {
			return false, nil
		}
	}
	return checkRequest(req) == nil, nil // net/http says what is wrong, or knows what to do
}

// try sends the request once. Where it is to be sent again, that is prepared.
func (x *exchange) try(mayRepeat bool) (res *http.Response, again bool, err error) {
	r, err := x.core.acquire(x.req.Context(), x.key)
	switch {
	case err != nil:
		closeRequestBody(x.send)
		return nil, false, err
	case r.conn != nil:
		return x.overQUIC(r.conn, mayRepeat)
	case r.why != nil:
		x.core.log.Debug("weirhttp: a request goes by TCP", slog.String("origin", x.key.String()), slog.Any("reason", r.why))
	}
	if res, err = x.overTCP(); err == nil || r.why == nil || !isDialError(err) {
		return res, false, err
	}
	return x.afterTCP(r, err, mayRepeat)
}

// overTCP sends the request by HTTP/1.1 or 2.
func (x *exchange) overTCP() (*http.Response, error) {
	res, err := x.core.tcp.RoundTrip(x.send)
	if err != nil {
		return nil, err
	}
	x.core.count(func(s *TransportStats) {
		if res.ProtoMajor == 2 {
			s.HTTP2++
		} else {
			s.HTTP1++
		}
	})
	return x.finish(res), nil
}

// overQUIC sends the request by HTTP/3.
func (x *exchange) overQUIC(conn *originConn, mayRepeat bool) (_ *http.Response, again bool, err error) {
	res, sent, err := conn.roundTrip(x.send)
	if err == nil {
		if res.StatusCode == http.StatusMisdirectedRequest && mayRepeat && x.misdirected(conn) {
			_ = res.Body.Close()
			return nil, true, errMisdirected
		}
		x.core.count(func(s *TransportStats) { s.HTTP3++ })
		return x.finish(res), false, nil
	}
	switch judge(x.send, sent, err) {
	case verdictFail:
		mayRepeat = false
	case verdictOverTCP:
		x.core.failed(conn)
		mayRepeat = mayRepeat && x.core.mode != HTTP3Always
	case verdictRepeat:
		conn.drop()
	}
	if mayRepeat && (!sent || x.rewind()) {
		return nil, true, err
	}
	if !sent {
		closeRequestBody(x.send)
	}
	return nil, false, err
}

var errMisdirected = errors.New("421 Misdirected Request")

// misdirected tells whether an alternative that answered 421 was all that was wrong. It is forgotten (RFC 7838 section 6).
func (x *exchange) misdirected(conn *originConn) bool {
	if conn.target == x.key || !x.rewind() {
		return false
	}
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.setAltLocked(conn.origin, originKey{}, conn.origin.until)
	conn.dropLocked()
	return true
}

// afterTCP is what is left when TCP does not connect, either: where the handshake still goes on, it decides.
func (x *exchange) afterTCP(r route, errTCP error, mayRepeat bool) (res *http.Response, again bool, err error) {
	why := r.why
	if r.dial != nil && mayRepeat && x.rewind() {
		select {
		case <-r.dial.done:
		case <-x.req.Context().Done():
		}
		if hasEnded(r.dial.done) && r.dial.err == nil && x.req.Context().Err() == nil {
			return nil, true, errTCP
		}
		closeRequestBody(x.send) // the one that rewind has opened
		if hasEnded(r.dial.done) && r.dial.err != nil {
			why = r.dial.err
		}
	}
	return nil, false, fmt.Errorf("%w (no HTTP/3: %w)", errTCP, why)
}

// isDialError tells that nothing of a request went out by TCP.
func isDialError(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}

// finish has a response say what it is to, and learns from it.
func (x *exchange) finish(res *http.Response) *http.Response {
	res.Request = x.req
	if x.key != (originKey{}) && res.StatusCode != http.StatusMisdirectedRequest { // RFC 7838 section 6
		x.core.learn(x.key, res.Header)
	}
	return res
}
