package weirprom_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"net/netip"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirprom"
)

// A loop receives three datagrams, and Prometheus hears of it.
func ExampleNewCollector() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(weirprom.NewCollector(map[string]*weir.Loop{"dns": loop}))
	metrics := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	defer metrics.Close()

	received := 0
	server, err := loop.ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(*weir.UDP, *weir.Datagram) {
			if received++; received == 3 {
				_ = loop.Close()
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		_ = server.Send([]byte("query"), server.LocalAddr())
	}
	if err := loop.Run(context.Background()); err != nil {
		log.Fatal(err)
	}

	answer, err := metrics.Client().Get(metrics.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "weir_udp_datagrams_received_total") {
			fmt.Print(line)
		}
	}
	// Output: weir_udp_datagrams_received_total{loop="dns"} 3
}
