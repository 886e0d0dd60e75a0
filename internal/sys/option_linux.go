//go:build linux

package sys

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// optionNames gives each Option its level and number.
var optionNames = [...]struct{ level, name int }{
	ReuseAddr:   {unix.SOL_SOCKET, unix.SO_REUSEADDR},
	ReusePort:   {unix.SOL_SOCKET, unix.SO_REUSEPORT},
	Broadcast:   {unix.SOL_SOCKET, unix.SO_BROADCAST},
	RecvBuffer:  {unix.SOL_SOCKET, unix.SO_RCVBUF},
	SendBuffer:  {unix.SOL_SOCKET, unix.SO_SNDBUF},
	IPv6Only:    {unix.IPPROTO_IPV6, unix.IPV6_V6ONLY},
	SocketError: {unix.SOL_SOCKET, unix.SO_ERROR},

	RecvBufferForce: {unix.SOL_SOCKET, unix.SO_RCVBUFFORCE},
	SendBufferForce: {unix.SOL_SOCKET, unix.SO_SNDBUFFORCE},

	TTL:          {unix.IPPROTO_IP, unix.IP_TTL},
	HopLimit:     {unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS},
	TOS:          {unix.IPPROTO_IP, unix.IP_TOS},
	TrafficClass: {unix.IPPROTO_IPV6, unix.IPV6_TCLASS},

	MulticastTTL:        {unix.IPPROTO_IP, unix.IP_MULTICAST_TTL},
	MulticastHopLimit:   {unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS},
	MulticastLoop:       {unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP},
	MulticastLoop6:      {unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP},
	MulticastInterface:  {unix.IPPROTO_IP, unix.IP_MULTICAST_IF},
	MulticastInterface6: {unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF},

	PathMTUDiscovery:  {unix.IPPROTO_IP, unix.IP_MTU_DISCOVER},
	PathMTUDiscovery6: {unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER},
	PathMTU:           {unix.IPPROTO_IP, unix.IP_MTU},
	PathMTU6:          {unix.IPPROTO_IPV6, unix.IPV6_MTU},

	Reports:  {unix.IPPROTO_IP, unix.IP_RECVERR},
	Reports6: {unix.IPPROTO_IPV6, unix.IPV6_RECVERR},

	RecvTOS:          {unix.IPPROTO_IP, unix.IP_RECVTOS},
	RecvTrafficClass: {unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS},
	RecvLocal:        {unix.IPPROTO_IP, unix.IP_PKTINFO},
	RecvLocal6:       {unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO},
	RecvTime:         {unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW},
	RecvJoined:       {unix.IPPROTO_UDP, unix.UDP_GRO},
	SegmentSize:      {unix.IPPROTO_UDP, unix.UDP_SEGMENT},

	NoDelay:      {unix.IPPROTO_TCP, unix.TCP_NODELAY},
	KeepAlive:    {unix.SOL_SOCKET, unix.SO_KEEPALIVE},
	KeepIdle:     {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
	KeepInterval: {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
	KeepCount:    {unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
	UserTimeout:  {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
	DeferAccept:  {unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT},
	Linger:       {unix.SOL_SOCKET, unix.SO_LINGER},
	NotSentLowAt: {unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT},
	MaxSegment:   {unix.IPPROTO_TCP, unix.TCP_MAXSEG},
}

func (s *real) SetOption(fd int, o Option, value int) error {
	n := optionNames[o]
	switch o {
	case MulticastInterface: // a plain int would be an address
		return unix.SetsockoptIPMreqn(fd, n.level, n.name, &unix.IPMreqn{Ifindex: int32(value)})
	case Linger:
		return unix.SetsockoptLinger(fd, n.level, n.name, toLinger(value))
	}
	return unix.SetsockoptInt(fd, n.level, n.name, value)
}

func (s *real) GetOption(fd int, o Option) (int, error) {
	n := optionNames[o]
	if o == Linger {
		linger, err := unix.GetsockoptLinger(fd, n.level, n.name)
		if err != nil {
			return 0, err
		}
		return fromLinger(linger), nil
	}
	return unix.GetsockoptInt(fd, n.level, n.name)
}

func toLinger(seconds int) *unix.Linger {
	if seconds < 0 {
		return &unix.Linger{}
	}
	return &unix.Linger{Onoff: 1, Linger: int32(seconds)}
}

func fromLinger(l *unix.Linger) int {
	if l.Onoff == 0 {
		return -1
	}
	return int(l.Linger)
}

func (s *real) BindToDevice(fd int, name string) error { return unix.BindToDevice(fd, name) }

// groupSourceReq is struct group_source_req of RFC 3678; group_req is its beginning. Its addresses are
// sockaddr_storage, aligned as a pointer is.
type groupSourceReq struct {
	Interface uint32
	Group     storage
	Source    storage
}

// storage is struct sockaddr_storage. What aligns it stands in front: behind the rest, a field of no size makes
// the struct larger.
type storage struct {
	_    [0]uintptr
	name rawName
	_    [128 - unix.SizeofSockaddrInet6]byte
}

func (s *real) Membership(fd int, m Membership, join bool) error {
	req := groupSourceReq{Interface: uint32(m.Interface)}
	size := unsafe.Offsetof(req.Source)
	option := unix.MCAST_LEAVE_GROUP
	if join {
		option = unix.MCAST_JOIN_GROUP
	}
	if m.Source.IsValid() {
		size = unsafe.Sizeof(req)
		option = unix.MCAST_LEAVE_SOURCE_GROUP
		if join {
			option = unix.MCAST_JOIN_SOURCE_GROUP
		}
		putName(&req.Source.name, netip.AddrPortFrom(m.Source.WithZone(""), 0))
	}
	putName(&req.Group.name, netip.AddrPortFrom(m.Group.WithZone(""), 0))
	level := unix.IPPROTO_IPV6
	if m.Group.Is4() {
		level = unix.IPPROTO_IP
	}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&req)), size, 0)
	return errOrNil(errno)
}
