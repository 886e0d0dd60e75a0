//go:build unix

package main

import (
	"fmt"
	"net"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"

	"github.com/weirnet/weir/lab/internal/meter"
)

type server struct {
	gnet.BuiltinEventEngine
	addr string
}

func (s *server) OnBoot(gnet.Engine) gnet.Action {
	go meter.Serve(s.addr)
	return gnet.None
}

func (s *server) OnTraffic(c gnet.Conn) gnet.Action {
	b, err := c.Next(-1)
	if err != nil {
		return gnet.Close
	}
	_, _ = c.Write(b)
	return gnet.None
}

func main() {
	addr, err := freeAddr()
	if err != nil {
		meter.Fail(err)
	}
	if err := gnet.Run(&server{addr: addr}, "tcp://"+addr, gnet.WithNumEventLoop(1), gnet.WithLogLevel(logging.ErrorLevel)); err != nil {
		meter.Fail(err)
	}
}

// freeAddr is an address with a port that was free a moment ago: gnet does not tell which one it was given.
func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("look for a port: %w", err)
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}
