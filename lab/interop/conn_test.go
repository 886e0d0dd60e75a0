package interop

import (
	"testing"

	"github.com/weirnet/weir/dgram"
)

func listen(t *testing.T) *dgram.Conn {
	t.Helper()
	c, err := dgram.Listen(t.Context(), "udp4", "127.0.0.1:0", dgram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the other package may have closed it
	return c
}
