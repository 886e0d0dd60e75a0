//go:build !linux

package dgram

import (
	"errors"
	"net"
	"os"

	"github.com/weirnet/weir/internal/sys"
)

// receive receives one datagram, and waits for it.
func (r *receiver) receive() error {
	r.makeSlots()
	slot := r.batch.Slot(0)
	n, _, _, from, err := r.conn.udp.ReadMsgUDPAddrPort(slot, nil)
	r.conn.counters.recvCalls.Add(1)
	switch {
	case err == nil:
		r.batch.Msgs[0] = sys.Message{Buf: slot[:n], Addr: from}
		r.arrived(1)
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
		return r.conn.opError("read", nil, plain(err))
	}
	return r.failed(reason(err))
}
