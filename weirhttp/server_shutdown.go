package weirhttp

import (
	"context"
	"slices"
)

// Shutdown lets requests in progress end, and closes everything.
//
//   - New connections are refused at once. Clients are told that no more requests are taken, and those that they send
//     nevertheless are rejected, for another server.
//   - A connection of HTTP/3 is kept until its client closes it, or until nothing was sent or received in three probe
//     timeouts after its last request. What is lost of a response is sent again until then; a client that acknowledges
//     nothing any more has five seconds, and more where many are at work.
//   - When ctx ends, all that is left is closed at once, and its error returned; handlers find their contexts ended.
//   - It may be called more than once, also at once, and before Serve, which then answers http.ErrServerClosed.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, e := range s.stop() {
		select {
		case <-e.gone:
		case <-ctx.Done():
			_ = s.Close()
			return ctx.Err()
		}
	}
	return nil
}

// Close closes everything at once; clients of HTTP/3 are told, and handlers find their contexts ended. It does not wait
// for handlers. A Shutdown that is in progress returns nil.
func (s *Server) Close() error {
	all := s.stop()
	for _, e := range all {
		e.cancel()
	}
	for _, e := range all {
		<-e.gone
	}
	return nil
}

// stop has each endpoint shut down, and returns them; none will be added any more, but a Serve that broke may remove its own.
func (s *Server) stop() []*endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, e := range s.endpoints {
		e.shutdown()
	}
	return slices.Clone(s.endpoints) // one that broke is removed meanwhile
}
