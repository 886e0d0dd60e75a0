//go:build unix

package meter

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Serve says "ready" and where the program listens, answers lines until there are no more, and ends the program. An answer is the
// processor time in nanoseconds, the resident memory in bytes, the heap in use after a collection where the line
// is "gc", the number of goroutines, and what the program counts itself.
func Serve(addr string, counts ...func() uint64) {
	ServeAll(addr, func() (n []uint64) {
		for _, count := range counts {
			n = append(n, count())
		}
		return n
	})
}

// ServeAll is Serve for a program that counts many things at once.
func ServeAll(addr string, counts func() []uint64) {
	fmt.Println("ready", addr)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var heap uint64
		if lines.Text() == "gc" {
			heap = heapBytes()
		}
		answer := []uint64{uint64(ProcessorTime().Nanoseconds()), residentBytes(), heap, uint64(runtime.NumGoroutine())}
		answer = append(answer, counts()...)
		fmt.Println(strings.Trim(fmt.Sprint(answer), "[]"))
	}
	os.Exit(0)
}

// Fail ends the program with an error.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// ProcessorTime is what the process has used so far.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		Fail(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// residentBytes is 0 where the system has no /proc.
func residentBytes() uint64 {
	f, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident uint64
	if _, err := fmt.Sscan(string(f), &size, &resident); err != nil {
		return 0
	}
	return resident * uint64(os.Getpagesize())
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
