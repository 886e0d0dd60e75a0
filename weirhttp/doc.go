// Package weirhttp serves one http.Handler over HTTP/1.1, HTTP/2 and HTTP/3 on one port number, and has a transport
// that speaks all three.
package weirhttp

import _ "github.com/quic-go/quic-go/http3"
