package weirhttp_test

import (
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/weirnet/weir/weirhttp"
)

// A client that uses HTTP/3 from the second request on, where a server has it.
func ExampleTransport() {
	transport := &weirhttp.Transport{}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	for range 2 {
		res, err := client.Get("https://www.example.com/")
		if err != nil {
			log.Print(err)
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		fmt.Println(res.Proto)
	}
	fmt.Println(transport.Stats().Fallbacks.Late, "requests did not wait for QUIC")
}
