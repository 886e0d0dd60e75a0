package weirhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
)

// errNoListener tells that Serve was given nothing to serve.
var errNoListener = errors.New("weirhttp: Serve needs a TCP listener")

// ListenAndServe listens on Addr, with TCP and with UDP, and serves until Shutdown or Close.
//
//   - Errors: http.ErrServerClosed after Shutdown or Close; else which socket could not be opened, or broke.
func (s *Server) ListenAndServe() error {
	if s.stopped() {
		return http.ErrServerClosed
	}
	if err := checkTLS(s.TLSConfig, !s.NoHTTP3); err != nil {
		return err
	}
	if s.NoHTTP3 {
		tcp, err := listenTCP(context.Background(), s.Addr)
		if err != nil {
			return err
		}
		return s.Serve(tcp, nil)
	}
	tcp, udp, err := Listen(context.Background(), s.Addr, s.UDP)
	if err != nil {
		return err
	}
	return s.Serve(tcp, udp)
}

// Serve serves TCP, where clients begin with TLS, and UDP on sockets that are open already; udp may be nil, for no
// HTTP/3. It returns when Shutdown or Close is called, which have yet to return then, or when one of the two breaks.
//
//   - Shape: it may be called several times at once, for several addresses; limits are those of all.
//   - Owner: both sockets are the Server's, and closed with it, also where Serve fails at once.
//   - Errors: http.ErrServerClosed after Shutdown or Close; else what broke. Accept failing for a while, as without
//     descriptors, does not end it: it rests, and tries again.
func (s *Server) Serve(tcp net.Listener, udp net.PacketConn) error {
	e, err := s.add(tcp, udp)
	if err != nil {
		if tcp != nil {
			_ = tcp.Close()
		}
		if udp != nil {
			_ = udp.Close()
		}
		return err
	}
	err = e.serve()
	if s.stopped() {
		return http.ErrServerClosed
	}
	s.remove(e)
	return err
}

// add makes an endpoint of the sockets.
func (s *Server) add(tcp net.Listener, udp net.PacketConn) (*endpoint, error) {
	if tcp == nil {
		return nil, errNoListener
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, http.ErrServerClosed
	}
	if s.NoHTTP3 && udp != nil {
		_ = udp.Close()
		udp = nil
	}
	if err := checkTLS(s.TLSConfig, udp != nil); err != nil {
		return nil, err
	}
	e, err := newEndpoint(s.coreLocked(), s.TLSConfig, tcp, udp)
	if err != nil {
		return nil, fmt.Errorf("weirhttp: serving UDP: %w", err)
	}
	s.endpoints = append(s.endpoints, e)
	return e, nil
}

func (s *Server) remove(e *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = slices.DeleteFunc(s.endpoints, func(x *endpoint) bool { return x == e })
}

func (s *Server) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}
