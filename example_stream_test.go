package weir_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/weirnet/weir"
)

// A server that sends back what it is sent. What Write has no room for is the peer's, who does not read: the server
// reads on when there is room again.
func ExampleLoop_ListenTCP() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := loop.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), weir.ListenerConfig{}, weir.ListenerHandler{
		Conn: weir.ConnHandler{
			OnData: func(c *weir.Conn, b []byte) {
				rest, _ := c.Data.([]byte)
				if len(rest) == 0 {
					n, err := c.Write(b)
					if err != weir.ErrWouldBlock {
						return
					}
					b = b[n:]
				}
				c.Data = append(rest, b...) // there is a rest already where a Stop has resumed the connection
				c.Pause()
			},
			OnDrain: func(c *weir.Conn) {
				rest, _ := c.Data.([]byte)
				n, err := c.Write(rest)
				c.Data = rest[n:]
				if err == nil {
					c.Resume()
				}
			},
		},
		OnError: func(_ *weir.Listener, err error) { log.Print(err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	client, err := loop.DialTCP(netip.AddrPort{}, server.Addr(), weir.ConnConfig{}, weir.ConnHandler{
		OnData: func(c *weir.Conn, b []byte) {
			fmt.Printf("%s\n", b)
			_ = c.Close()
		},
		OnClose: func(_ *weir.Conn, err error) {
			fmt.Println("closed:", err)
			loop.Stop(-1)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, _ = client.Write([]byte("hello")) // goes out when the connection is there
	if err := loop.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// hello
	// closed: <nil>
}

// A stream has no borders: a line may come in pieces, or several at once. What is not a whole line is kept until the
// rest comes.
func ExampleConn_lines() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	const longest = 4096
	onLine := func(c *weir.Conn, line []byte) { fmt.Printf("%q\n", line) }
	handler := weir.ConnHandler{
		OnData: func(c *weir.Conn, b []byte) {
			if kept, _ := c.Data.([]byte); len(kept) > 0 {
				b = append(kept, b...)
			}
			for {
				line, rest, found := bytes.Cut(b, []byte("\n"))
				if !found {
					break
				}
				onLine(c, line)
				b = rest
			}
			if len(b) > longest {
				_ = c.Reset() // a peer must not fill the memory
				return
			}
			c.Data = bytes.Clone(b)
		},
		OnClose: func(*weir.Conn, error) { loop.Stop(-1) },
	}
	server, err := loop.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), weir.ListenerConfig{}, weir.ListenerHandler{Conn: handler})
	if err != nil {
		log.Fatal(err)
	}
	client, err := loop.DialTCP(netip.AddrPort{}, server.Addr(), weir.ConnConfig{}, weir.ConnHandler{})
	if err != nil {
		log.Fatal(err)
	}
	_, _ = client.Write([]byte("one\ntwo\nthr"))
	loop.NextTurn(func() {
		_, _ = client.Write([]byte("ee\n"))
		_ = client.CloseWrite()
	})
	if err := loop.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// "one"
	// "two"
	// "three"
}

// A process gives a UDP socket to another one over a unix socket; here both are in one loop.
func ExampleConn_WriteFiles() {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	adopt := func(_ *weir.Conn, files *weir.Files) {
		socket, err := loop.AdoptUDP(files.FD(0), weir.UDPConfig{}, weir.UDPHandler{
			OnDatagram: func(_ *weir.UDP, d *weir.Datagram) {
				fmt.Printf("%s\n", d.Payload)
				loop.Stop(-1)
			},
		})
		if err != nil {
			log.Fatal(err)
		}
		_ = socket.Send([]byte("to myself"), socket.LocalAddr())
	}
	taker, err := loop.ListenUnix(filepath.Join(dir, "socket"), weir.ListenerConfig{Conn: weir.ConnConfig{MaxFiles: 1}},
		weir.ListenerHandler{Conn: weir.ConnHandler{OnFiles: adopt}})
	if err != nil {
		log.Fatal(err)
	}
	socket, err := loop.ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), weir.UDPConfig{NoGRO: true}, weir.UDPHandler{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = loop.DialUnix(taker.Name(), weir.ConnConfig{}, weir.ConnHandler{
		OnOpen: func(c *weir.Conn) {
			fd, _, err := socket.Export()
			if err != nil {
				log.Fatal(err)
			}
			if err := c.WriteFiles([]byte("udp"), fd); err != nil {
				log.Fatal(err)
			}
			_ = os.NewFile(uintptr(fd), "udp").Close() // WriteFiles has copied it
			_ = socket.Close()
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := loop.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: to myself
}

// A server that answers each connection with a file.
func ExampleConn_SendFile() {
	f, err := os.CreateTemp("", "weir")
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.WriteString("the file"); err != nil {
		log.Fatal(err)
	}
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	answer := func(c *weir.Conn) {
		_, _ = c.Write([]byte("here is "))
		err := c.SendFile(f, 0, int64(len("the file")), func(err error) {
			if err != nil {
				log.Print(err)
			}
			_ = c.Close() // not before: its time limit would count for the file
		})
		if err != nil {
			log.Print(err)
			_ = c.Reset()
		}
	}
	server, err := loop.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), weir.ListenerConfig{},
		weir.ListenerHandler{Conn: weir.ConnHandler{OnOpen: answer}})
	if err != nil {
		log.Fatal(err)
	}
	var got []byte
	_, err = loop.DialTCP(netip.AddrPort{}, server.Addr(), weir.ConnConfig{}, weir.ConnHandler{
		OnData:  func(_ *weir.Conn, b []byte) { got = append(got, b...) },
		OnClose: func(*weir.Conn, error) { loop.Stop(-1) },
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := loop.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", got)
	// Output: here is the file
}

// A server in which uploads, however many, weigh as much together as all its other connections: who asks for one is moved
// to a lane of their own. And a Stop does not cut anybody off without a word.
func ExampleConn_SetLane() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	uploads := loop.NewLane()
	server, err := loop.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), weir.ListenerConfig{}, weir.ListenerHandler{
		Conn: weir.ConnHandler{
			OnData: func(c *weir.Conn, b []byte) {
				if bytes.HasPrefix(b, []byte("upload")) {
					c.SetLane(uploads)
				}
				_, _ = c.Write([]byte("go on\n"))
				loop.Stop(-1)
			},
			OnStop: func(c *weir.Conn) { _, _ = c.Write([]byte("the server stops\n")) },
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	answer := make(chan []byte)
	go func() {
		client, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close()
		_, _ = client.Write([]byte("upload"))
		b, _ := io.ReadAll(client)
		answer <- b
	}()
	if err := loop.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", <-answer)
	// Output:
	// go on
	// the server stops
}
