//go:build !unix

package main

// openNoWait is nothing where there are no pipes among files.
const openNoWait = 0
