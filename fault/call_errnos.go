package fault

import (
	"slices"
	"syscall"
)

// Errnos returns what the call can answer by the manual, for tests that try each. The slice is the caller's;
// it is nil for what is no call.
//
//   - Shape: no errno twice. EINTR is left out, as who makes the calls tries again; so is EFAULT, as no wrong
//     pointer goes to the kernel, and what streams alone can answer.
//   - Platforms: what Linux documents, and POSIX where it adds to that.
//   - Source: the manual pages that call_errnos.go names at each row (Linux man-pages 6).
func Errnos(call Call) []syscall.Errno {
	if !call.known() {
		return nil
	}
	return slices.Clone(callErrnos[call])
}

// callErrnos has the sources above each row. Where a seccomp filter is likely, or the call is younger than
// kernels in use, the row has what these answer: EPERM and ENOSYS (seccomp(2) SECCOMP_RET_ERRNO; syscall(2)).
var callErrnos = [...][]syscall.Errno{
	// socket(2); EPROTOTYPE: POSIX socket()
	Socket: {
		syscall.EACCES, syscall.EAFNOSUPPORT, syscall.EINVAL, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS,
		syscall.ENOMEM, syscall.EPROTONOSUPPORT, syscall.EPROTOTYPE,
	},
	// bind(2); ENODEV: ipv6(7); EAFNOSUPPORT, ENOBUFS: POSIX bind()
	Bind: {
		syscall.EACCES, syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.EBADF,
		syscall.EINVAL, syscall.ENOBUFS, syscall.ENODEV, syscall.ENOMEM, syscall.ENOTSOCK,
	},
	// connect(2); EHOSTUNREACH, EINVAL, ENOBUFS, ENOMEM: ip(7)
	Connect: {
		syscall.EACCES, syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.EAGAIN,
		syscall.EBADF, syscall.EHOSTUNREACH, syscall.EINVAL, syscall.ENETUNREACH, syscall.ENOBUFS,
		syscall.ENOMEM, syscall.ENOTSOCK, syscall.EPERM,
	},
	// getsockname(2)
	LocalAddr: {syscall.EBADF, syscall.EINVAL, syscall.ENOBUFS, syscall.ENOTSOCK},
	// getpeername(2)
	RemoteAddr: {syscall.EBADF, syscall.EINVAL, syscall.ENOBUFS, syscall.ENOTCONN, syscall.ENOTSOCK},
	// getsockopt(2), of SO_DOMAIN, SO_TYPE and SO_COOKIE
	Describe: {syscall.EBADF, syscall.EINVAL, syscall.ENOPROTOOPT, syscall.ENOTSOCK},
	// fcntl(2) F_DUPFD, F_DUPFD_CLOEXEC
	Duplicate: {syscall.EBADF, syscall.EINVAL, syscall.EMFILE},
	// close(2), without what disks answer
	Close: {syscall.EBADF, syscall.EIO},
	// recv(2), recvmmsg(2); by udp(7) also those of ip(7) and socket(7), here what ICMP makes: EACCES,
	// EHOSTDOWN, EHOSTUNREACH, EMSGSIZE, ENETUNREACH, ENOPROTOOPT, EOPNOTSUPP, EPROTO (Linux
	// net/ipv4/icmp.c, net/ipv6/icmp.c); ENOBUFS: ip(7)
	Recv: {
		syscall.EACCES, syscall.EAGAIN, syscall.EBADF, syscall.ECONNREFUSED, syscall.EHOSTDOWN,
		syscall.EHOSTUNREACH, syscall.EINVAL, syscall.EMSGSIZE, syscall.ENETUNREACH, syscall.ENOBUFS,
		syscall.ENOMEM, syscall.ENOPROTOOPT, syscall.ENOSYS, syscall.ENOTCONN, syscall.ENOTSOCK,
		syscall.EOPNOTSUPP, syscall.EPERM, syscall.EPROTO,
	},
	// send(2), sendmmsg(2); what ICMP makes as at Recv; EAFNOSUPPORT, EIO, ENETDOWN: POSIX sendto();
	// EPERM: also a packet filter that drops the datagram
	Send: {
		syscall.EACCES, syscall.EAFNOSUPPORT, syscall.EAGAIN, syscall.EBADF, syscall.ECONNREFUSED,
		syscall.EDESTADDRREQ, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EINVAL, syscall.EIO,
		syscall.EISCONN, syscall.EMSGSIZE, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.ENOBUFS,
		syscall.ENOMEM, syscall.ENOPROTOOPT, syscall.ENOSYS, syscall.ENOTCONN, syscall.ENOTSOCK,
		syscall.EOPNOTSUPP, syscall.EPERM, syscall.EPIPE, syscall.EPROTO,
	},
	// recv(2), recvmmsg(2) with MSG_ERRQUEUE, which takes reports and no pending error
	RecvErrors: {
		syscall.EAGAIN, syscall.EBADF, syscall.EINVAL, syscall.ENOMEM, syscall.ENOSYS, syscall.ENOTSOCK,
		syscall.EPERM,
	},
	// setsockopt(2); EADDRNOTAVAIL, ENOBUFS, ENOMEM, EOPNOTSUPP, EPERM: ip(7); ENODEV: an interface that is
	// none (Linux net/ipv6/ipv6_sockglue.c)
	SetOption: {
		syscall.EADDRNOTAVAIL, syscall.EBADF, syscall.EINVAL, syscall.ENOBUFS, syscall.ENODEV, syscall.ENOMEM,
		syscall.ENOPROTOOPT, syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EPERM,
	},
	// getsockopt(2); ENOTCONN, EOPNOTSUPP: ip(7)
	GetOption: {
		syscall.EBADF, syscall.EINVAL, syscall.ENOPROTOOPT, syscall.ENOTCONN, syscall.ENOTSOCK,
		syscall.EOPNOTSUPP,
	},
	// getsockopt(2) of SO_MEMINFO, which Linux has since 4.12
	MemInfo: {syscall.EBADF, syscall.EINVAL, syscall.ENOPROTOOPT, syscall.ENOTSOCK},
	// setsockopt(2); ENODEV, EPERM: an interface that is none, or no right to it (Linux net/core/sock.c)
	BindToDevice: {
		syscall.EBADF, syscall.EINVAL, syscall.ENODEV, syscall.ENOPROTOOPT, syscall.ENOTSOCK, syscall.EPERM,
	},
	// setsockopt(2); EOPNOTSUPP: ip(7); EADDRINUSE for a group joined already, EADDRNOTAVAIL for one that was
	// not, ENODEV, ENOBUFS for too many, ENOMEM (Linux net/ipv4/igmp.c, net/ipv6/mcast.c)
	Membership: {
		syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, syscall.EBADF, syscall.EINVAL, syscall.ENOBUFS,
		syscall.ENODEV, syscall.ENOMEM, syscall.ENOPROTOOPT, syscall.ENOTSOCK, syscall.EOPNOTSUPP,
	},
	// epoll_create1(2), eventfd(2)
	Poller: {
		syscall.EINVAL, syscall.EMFILE, syscall.ENFILE, syscall.ENODEV, syscall.ENOMEM, syscall.ENOSYS,
		syscall.EPERM,
	},
	// epoll_ctl(2) EPOLL_CTL_ADD, without ELOOP, which pollers in pollers answer
	Add: {
		syscall.EBADF, syscall.EEXIST, syscall.EINVAL, syscall.ENOMEM, syscall.ENOSPC, syscall.EPERM,
	},
	// epoll_ctl(2) EPOLL_CTL_MOD
	Modify: {syscall.EBADF, syscall.EINVAL, syscall.ENOENT, syscall.ENOMEM, syscall.EPERM},
	// epoll_ctl(2) EPOLL_CTL_DEL
	Remove: {syscall.EBADF, syscall.EINVAL, syscall.ENOENT, syscall.ENOMEM, syscall.EPERM},
	// epoll_wait(2), epoll_pwait2(2), which Linux has since 5.11
	Wait: {syscall.EBADF, syscall.EINVAL, syscall.ENOSYS, syscall.EPERM},
	// write(2) on an eventfd(2)
	Wake: {syscall.EAGAIN, syscall.EBADF, syscall.EINVAL},
}
