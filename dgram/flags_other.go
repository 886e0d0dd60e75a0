//go:build !linux

package dgram

// Elsewhere package net does not tell.
const msgTrunc, msgCtrunc = 0, 0
