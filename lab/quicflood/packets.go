//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"time"

	"github.com/quic-go/quic-go"
)

// garbage is of all sizes up to that of a QUIC datagram; some of it looks like one.
func garbage(n int) [][]byte {
	packets := make([][]byte, n)
	for i := range packets {
		packets[i] = make([]byte, 1+mathrand.IntN(1200))
		_, _ = rand.Read(packets[i])
	}
	return packets
}

// initials are first datagrams of connections, each with a connection ID and keys of its own.
func initials(n int) ([][]byte, error) {
	recorder, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer recorder.Close()
	local, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer local.Close()
	t := &quic.Transport{Conn: local}
	defer t.Close()
	var packets [][]byte
	seen := make(map[string]bool)
	for b := make([]byte, 2048); len(packets) < n; {
		size, err := first(t, recorder, b)
		if err != nil {
			return nil, err
		}
		id, ok := initialID(b[:size])
		if ok && !seen[id] {
			seen[id] = true
			packets = append(packets, append([]byte(nil), b[:size]...))
		}
	}
	return packets, nil
}

// first begins a connection and gives it up once a datagram has come.
func first(t *quic.Transport, recorder *net.UDPConn, b []byte) (n int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	dialed := make(chan struct{})
	go func() {
		defer close(dialed)
		_, _ = t.Dial(ctx, recorder.LocalAddr(), &tls.Config{
			InsecureSkipVerify: true,
			NextProtos:         []string{"h3"},
			// With a key for ML-KEM a client's first flight would be two datagrams; so each begins a handshake.
			CurvePreferences: []tls.CurveID{tls.X25519},
		}, nil)
	}()
	defer func() { cancel(); <-dialed }()
	if err := recorder.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return 0, err
	}
	if n, _, err = recorder.ReadFromUDPAddrPort(b); err != nil {
		return 0, fmt.Errorf("a client's first datagram: %w", err)
	}
	return n, nil
}

// initialID is the destination connection ID of an Initial packet of version 1 (RFC 9000, 17.2.2), which is in a datagram
// of 1200 bytes at least (14.1).
func initialID(b []byte) (id string, ok bool) {
	const initial, kind = 0xc0, 0xf0
	if len(b) < 1200 || b[0]&kind != initial || string(b[1:5]) != "\x00\x00\x00\x01" {
		return "", false
	}
	n := int(b[5])
	return string(b[6 : 6+n]), true
}
