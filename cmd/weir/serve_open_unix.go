//go:build unix

package main

import "syscall"

// openNoWait has open not wait for the writer of a pipe.
const openNoWait = syscall.O_NONBLOCK
