package weirhttp

import (
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// sound tells that a request can go by HTTP/3. Others get their answer, an error most times, from http.Transport.
func sound(req *http.Request) bool {
	if req.URL == nil || req.URL.Scheme != "https" || req.URL.Host == "" || req.Header == nil {
		return false
	}
	if req.Method != "" && !httpguts.ValidHeaderFieldName(req.Method) || req.Method == http.MethodConnect {
		return false
	}
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	host, err := httpguts.PunycodeHostPort(host)
	return err == nil && httpguts.ValidHostHeader(host) && soundHeader(req.Header) && soundHeader(req.Trailer)
}

func soundHeader(h http.Header) bool {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return false
			}
		}
	}
	return true
}

// proxied tells that a request is to go by a proxy.
func (t *Transport) proxied(req *http.Request) bool {
	if t.tcp.Proxy == nil {
		return false
	}
	proxy, err := t.tcp.Proxy(req)
	return proxy != nil || err != nil
}
