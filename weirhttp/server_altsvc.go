package weirhttp

import (
	"fmt"
	"net"
	"time"
)

// altSvcHeader tells clients that there is HTTP/3 on the UDP port (RFC 7838); "" where none is to be told.
func altSvcHeader(udp net.Addr, maxAge time.Duration) string {
	a, ok := udp.(*net.UDPAddr)
	if !ok || a.Port == 0 || maxAge == 0 {
		return ""
	}
	return fmt.Sprintf(`h3=":%d"; ma=%d`, a.Port, int64(maxAge/time.Second))
}
