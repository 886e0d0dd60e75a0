package weirhttp

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// defaultSilence is how long a peer may not answer a request's packets at all. An acknowledgment takes a round trip and 25 ms
// (RFC 9000 section 13.2.1); the transport itself would notice after three times keepAlive.
const defaultSilence = 5 * time.Second

// roundTrip sends a request. The connection is released when it fails, or with the response's body.
//
//   - Shape: sent tells that its headers were written: before, the server cannot have acted on it, and its body was not
//     touched; after, its body is read and closed by somebody else.
func (c *originConn) roundTrip(req *http.Request) (res *http.Response, sent bool, err error) {
	watch := silenceWatch{conn: c}
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{WroteHeaders: watch.begin})
	prepared := c.prepared(req.WithContext(ctx))
	closeBody := ownBody(prepared)
	res, err = c.h3.RoundTrip(prepared)
	sent = watch.end()
	if err != nil {
		if sent {
			closeBody()
		}
		c.release()
		return nil, sent, err
	}
	res.Body = &originBody{ReadCloser: res.Body, release: sync.OnceFunc(c.release), closeBody: closeBody}
	return res, sent, nil
}

// ownBody has the body of a request closed once, by whoever sends it or by the function that it returns: who sends may
// wait for more of it for ever.
func ownBody(req *http.Request) (closeBody func()) {
	if req.Body == nil || req.Body == http.NoBody {
		return func() {}
	}
	b := &requestBody{Reader: req.Body, close: sync.OnceValue(req.Body.Close)}
	req.Body = b
	return func() { _ = b.close() }
}

type requestBody struct {
	io.Reader
	close func() error
}

func (b *requestBody) Close() error { return b.close() }

// prepared has a copy of a request say what http3 leaves out.
func (c *originConn) prepared(req *http.Request) *http.Request {
	if req.Method == "" {
		req.Method = http.MethodGet
	}
	if c.target != c.origin.key && req.Header.Get("Alt-Used") == "" { // RFC 7838 section 5
		if req.Header = req.Header.Clone(); req.Header == nil {
			req.Header = http.Header{}
		}
		req.Header.Set("Alt-Used", c.target.String())
	}
	return req
}

// silenceWatch closes a connection whose peer does not react to a request: it is gone without a word, as after a restart.
type silenceWatch struct {
	conn  *originConn
	timer *time.Timer // nil: the request's headers were not written
}

// begin is called when the headers were written, by the goroutine that sends the request.
func (w *silenceWatch) begin() {
	if w.timer != nil {
		return
	}
	c := w.conn
	received := c.quic.ConnectionStats().PacketsReceived
	w.timer = time.AfterFunc(c.core.silence, func() {
		if c.quic.ConnectionStats().PacketsReceived == received {
			c.drop()
			_ = c.quic.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "the peer is silent")
		}
	})
}

func (w *silenceWatch) end() (begun bool) {
	if w.timer == nil {
		return false
	}
	w.timer.Stop()
	return true
}

// originBody tells when the response is over.
type originBody struct {
	io.ReadCloser
	release   func()
	closeBody func() // of the request, as net/http does when the response is closed
}

func (b *originBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.release()
	}
	return n, err
}

func (b *originBody) Close() error {
	defer b.release()
	defer b.closeBody()
	return b.ReadCloser.Close()
}
