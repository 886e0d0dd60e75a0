//go:build unix

package meter

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Serve says "ready" and where the program listens, answers lines until there are no more, and ends the program. An answer is the
// processor time in nanoseconds, the resident memory in bytes, and the heap in use after a collection where the line
// is "gc".
func Serve(addr string) {
	fmt.Println("ready", addr)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var heap uint64
		if lines.Text() == "gc" {
			heap = heapBytes()
		}
		fmt.Println(processorTime().Nanoseconds(), residentBytes(), heap)
	}
	os.Exit(0)
}

// Fail ends the program with an error.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func processorTime() time.Duration {
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
