// Package interop has packages that others wrote work over a dgram.Conn as it is.
package interop
