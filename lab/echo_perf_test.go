//go:build linux && perf

package lab

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestPerfEcho holds "CPU per 64-byte echo against gnet, one loop each: at most 0.9 of it at 100 and 1,000 connections,
// 0.65 with one", or at most 1.1 of a bare epoll loop's: where most of the time is the kernel's, which all of them
// spend alike, that loop itself is above 0.9 of gnet. Runs alternate, and the medians of their ratios count.
func TestPerfEcho(t *testing.T) {
	dir := build(t)
	for _, c := range []struct {
		conns int
		most  float64
	}{{1, 0.65}, {100, 0.9}, {1000, 0.9}} {
		t.Run(fmt.Sprint(c.conns), func(t *testing.T) {
			var gnet, bare float64
			for range tries {
				if gnet, bare = echoRatios(t, dir, c.conns); gnet <= c.most || bare <= mostOfBare {
					return
				}
			}
			t.Errorf("weir takes %.2f of gnet's processor time, more than %.2f, and %.2f of a bare loop's", gnet, c.most, bare)
		})
	}
}

const (
	tries = 3
	pairs = 9

	mostOfBare = 1.1
)

func echoRatios(t *testing.T, dir string, conns int) (gnet, bare float64) {
	servers := []string{"weirecho", "gnetecho", "rawecho", "stdecho", "weirecho"}
	costs := make([][]float64, len(servers))
	ratios := make([][]float64, len(servers))
	var children []*child
	for _, s := range servers {
		children = append(children, start(t, -1, filepath.Join(dir, s)))
	}
	for range pairs {
		for i, s := range children {
			costs[i] = append(costs[i], echoCost(t, dir, s, conns))
			ratios[i] = append(ratios[i], last(costs[0])/last(costs[i]))
		}
	}
	for _, c := range children {
		c.stop()
	}
	t.Logf("%d connections: ns of CPU an echo: weir %.0f, gnet %.0f, bare loop %.0f, net %.0f; weir/gnet %.2f (%.2f to %.2f), weir/bare %.2f, weir/net %.2f, weir/weir %.2f",
		conns, median(costs[0]), median(costs[1]), median(costs[2]), median(costs[3]),
		median(ratios[1]), slices.Min(ratios[1]), slices.Max(ratios[1]), median(ratios[2]), median(ratios[3]), median(ratios[4]))
	return median(ratios[1]), median(ratios[2])
}

func last(v []float64) float64 { return v[len(v)-1] }

// echoCost is the server's processor time for one message, in nanoseconds. The load has processor 1.
func echoCost(t *testing.T, dir string, server *child, conns int) float64 {
	load := start(t, 1, filepath.Join(dir, "echoload"), "-addr", server.first, "-conns", strconv.Itoa(conns))
	defer load.stop()
	return cost(server, load)
}
