//go:build linux

package sys

import (
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Info reads what an older kernel does not write as zero.
func (s *real) Info(fd int) (TCPInfo, error) {
	var raw unix.TCPInfo
	size := uint32(unsafe.Sizeof(raw))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&raw)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return TCPInfo{}, errno
	}
	if raw.Min_rtt == math.MaxUint32 {
		raw.Min_rtt = 0 // nothing was measured yet (Linux tcp_min_rtt)
	}
	return TCPInfo{
		RTT:              time.Duration(raw.Rtt) * time.Microsecond,
		RTTVariance:      time.Duration(raw.Rttvar) * time.Microsecond,
		MinRTT:           time.Duration(raw.Min_rtt) * time.Microsecond,
		SendMSS:          int(raw.Snd_mss),
		CongestionWindow: int(raw.Snd_cwnd),
		Unacked:          int(raw.Unacked),
		Lost:             int(raw.Lost),
		Retransmits:      uint64(raw.Total_retrans),
		BytesAcked:       raw.Bytes_acked,
		BytesReceived:    raw.Bytes_received,
		NotSentBytes:     int(raw.Notsent_bytes),
		DeliveryRate:     raw.Delivery_rate,
	}, nil
}
