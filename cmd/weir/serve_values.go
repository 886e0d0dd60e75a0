package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// address is where to listen. No host is all interfaces; port 0 is one that is free.
type address struct {
	host string
	port int
}

func (a address) String() string { return net.JoinHostPort(a.host, strconv.Itoa(a.port)) }

// url is what a browser on this machine takes.
func (a address) url() string {
	if a.host == "" || isUnspecified(a.host) {
		a.host = "localhost"
	}
	return "https://" + a.String()
}

// addressValue is a flag's address.
type addressValue struct{ a *address }

func (v addressValue) String() string { return v.a.String() }

func (v addressValue) Type() string { return "address" }

func (v addressValue) Set(s string) error {
	host, service, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("host:port or :port is allowed, as in localhost:8443, :8443 or [::1]:8443")
	}
	port, err := net.LookupPort("tcp", service)
	if err != nil || service == "" {
		return errors.New("the port must be a number from 0 to 65535, or a known name")
	}
	*v.a = address{host, port}
	return nil
}

// logFormat is what a line of the request log looks like.
type logFormat string

const (
	logText logFormat = "text"
	logJSON logFormat = "json"
)

// logValue is a flag's log format.
type logValue struct{ f *logFormat }

func (v logValue) String() string { return string(*v.f) }

func (v logValue) Type() string { return "format" }

func (v logValue) Set(s string) error {
	switch f := logFormat(s); f {
	case logText, logJSON:
		*v.f = f
		return nil
	default:
		return fmt.Errorf("text and json are allowed")
	}
}
