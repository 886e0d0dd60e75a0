//go:build !unix

package main

import (
	"errors"
	"os"
)

func fileLimit() (soft, hard uint64, err error) {
	return 0, 0, errors.New("this system has no such limit")
}

func readFile(string) (string, error) { return "", errors.ErrUnsupported }

func openProgram() (*os.File, error) { return nil, errors.ErrUnsupported }
