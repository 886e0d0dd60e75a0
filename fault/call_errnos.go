package fault

import (
	"slices"
	"syscall"
)

// Errnos returns what the call can answer by the manual, for tests that try each. The slice is the caller's;
// it is nil for what is no call.
//
//   - Shape: no errno twice. EINTR is left out, as who makes the calls tries again; so is EFAULT, as no wrong
//     pointer goes to the kernel, and EINPROGRESS and EALREADY, as nothing goes on behind a call that is not made.
//     What more than one kind of socket has, has the errnos of all.
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
	// bind(2), also for unix sockets: ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EROFS; ENODEV: ipv6(7); EAFNOSUPPORT,
	// ENOBUFS: POSIX bind()
	Bind: {
		syscall.EACCES, syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.EBADF,
		syscall.EINVAL, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ENOBUFS, syscall.ENODEV, syscall.ENOENT,
		syscall.ENOMEM, syscall.ENOTDIR, syscall.ENOTSOCK, syscall.EROFS,
	},
	// connect(2); EHOSTUNREACH, EINVAL, ENOBUFS, ENOMEM: ip(7); ELOOP, ENOENT, ENOTDIR: POSIX connect() of a unix
	// socket
	Connect: {
		syscall.EACCES, syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.EAGAIN,
		syscall.EBADF, syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.EINVAL, syscall.EISCONN, syscall.ELOOP,
		syscall.ENETUNREACH, syscall.ENOBUFS, syscall.ENOENT, syscall.ENOMEM, syscall.ENOTDIR, syscall.ENOTSOCK,
		syscall.EPERM, syscall.EPROTOTYPE, syscall.ETIMEDOUT,
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
	// net/ipv4/icmp.c, net/ipv6/icmp.c); ENOBUFS: ip(7); ECONNRESET: unix(7)
	Recv: {
		syscall.EACCES, syscall.EAGAIN, syscall.EBADF, syscall.ECONNREFUSED, syscall.ECONNRESET,
		syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EINVAL, syscall.EMSGSIZE, syscall.ENETUNREACH, syscall.ENOBUFS,
		syscall.ENOMEM, syscall.ENOPROTOOPT, syscall.ENOSYS, syscall.ENOTCONN, syscall.ENOTSOCK,
		syscall.EOPNOTSUPP, syscall.EPERM, syscall.EPROTO,
	},
	// send(2), sendmmsg(2); what ICMP makes as at Recv; EAFNOSUPPORT, EIO, ENETDOWN: POSIX sendto();
	// EPERM: also a packet filter that drops the datagram; ECONNRESET, EPROTOTYPE: unix(7); ELOOP, ENOENT, ENOTDIR:
	// POSIX sendto() of a unix socket
	Send: {
		syscall.EACCES, syscall.EAFNOSUPPORT, syscall.EAGAIN, syscall.EBADF, syscall.ECONNREFUSED, syscall.ECONNRESET,
		syscall.EDESTADDRREQ, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EINVAL, syscall.EIO,
		syscall.EISCONN, syscall.ELOOP, syscall.EMSGSIZE, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.ENOBUFS,
		syscall.ENOENT, syscall.ENOMEM, syscall.ENOPROTOOPT, syscall.ENOSYS, syscall.ENOTCONN, syscall.ENOTDIR,
		syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EPERM, syscall.EPIPE, syscall.EPROTO, syscall.EPROTOTYPE,
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
	// fcntl(2) F_GETFL, F_SETFL
	Unblock: {syscall.EBADF, syscall.EINVAL},
	// listen(2); EACCES, EDESTADDRREQ, EINVAL, ENOBUFS: POSIX listen()
	Listen: {
		syscall.EACCES, syscall.EADDRINUSE, syscall.EBADF, syscall.EDESTADDRREQ, syscall.EINVAL, syscall.ENOBUFS,
		syscall.ENOTSOCK, syscall.EOPNOTSUPP,
	},
	// accept(2), also what its "Error handling" lists, but ENONET, which Linux alone has; ENOSYS: a filter
	Accept: {
		syscall.EAGAIN, syscall.EBADF, syscall.ECONNABORTED, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
		syscall.EINVAL, syscall.EMFILE, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.ENFILE, syscall.ENOBUFS,
		syscall.ENOMEM, syscall.ENOPROTOOPT, syscall.ENOSYS, syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EPERM,
		syscall.EPROTO, syscall.ETIMEDOUT,
	},
	// recv(2); ETIMEDOUT: tcp(7); ECONNRESET, EIO, ENOBUFS, EOPNOTSUPP: POSIX recv(); EPIPE: a reset behind the end
	// (Linux net/ipv4/tcp_input.c); EHOSTUNREACH, ENETUNREACH: what ICMP makes, told when the connection gives up
	Read: {
		syscall.EAGAIN, syscall.EBADF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH,
		syscall.EINVAL, syscall.EIO, syscall.ENETUNREACH, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOTCONN,
		syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EPIPE, syscall.ETIMEDOUT,
	},
	// send(2), sendmsg(2); ETIMEDOUT: tcp(7); EIO, ENETDOWN: POSIX send(); EHOSTUNREACH, ENETUNREACH as at Read
	Write: {
		syscall.EAGAIN, syscall.EBADF, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.EINVAL, syscall.EIO,
		syscall.EMSGSIZE, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOTCONN,
		syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EPIPE, syscall.ETIMEDOUT,
	},
	// sendfile(2), also ENOSYS of its "Notes"; what a socket makes as at Write
	SendFile: {
		syscall.EAGAIN, syscall.EBADF, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.EINVAL, syscall.EIO,
		syscall.ENETUNREACH, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOSYS, syscall.ENOTCONN, syscall.EOPNOTSUPP,
		syscall.EOVERFLOW, syscall.EPERM, syscall.EPIPE, syscall.ESPIPE, syscall.ETIMEDOUT,
	},
	// shutdown(2); ENOBUFS: POSIX shutdown()
	CloseWrite: {syscall.EBADF, syscall.EINVAL, syscall.ENOBUFS, syscall.ENOTCONN, syscall.ENOTSOCK},
	// getsockopt(2) of TCP_INFO; EOPNOTSUPP: a unix socket (Linux net/socket.c)
	Info: {syscall.EBADF, syscall.EINVAL, syscall.ENOPROTOOPT, syscall.ENOTSOCK, syscall.EOPNOTSUPP},
	// lstat(2), unlink(2), without EISDIR of what is no socket; ENOTSOCK: a path of something else
	Unlink: {
		syscall.EACCES, syscall.EBUSY, syscall.EIO, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ENOENT,
		syscall.ENOMEM, syscall.ENOTDIR, syscall.ENOTSOCK, syscall.EPERM, syscall.EROFS,
	},
	// sendmsg(2), and unix(7) of SCM_RIGHTS: EINVAL, ETOOMANYREFS; EPERM: the receiver takes none (Linux
	// SO_PASSRIGHTS)
	WriteFiles: {
		syscall.EAGAIN, syscall.EBADF, syscall.ECONNRESET, syscall.EINVAL, syscall.EMSGSIZE, syscall.ENOBUFS,
		syscall.ENOMEM, syscall.ENOTCONN, syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EPERM, syscall.EPIPE,
		syscall.ETOOMANYREFS,
	},
	// recvmsg(2); ECONNRESET: unix(7). Too many descriptors are no error, but a message that was cut
	ReadFiles: {
		syscall.EAGAIN, syscall.EBADF, syscall.ECONNRESET, syscall.EINVAL, syscall.ENOMEM, syscall.ENOTCONN,
		syscall.ENOTSOCK, syscall.EOPNOTSUPP,
	},
}
