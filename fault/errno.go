package fault

import (
	"strconv"
	"syscall"
)

// errnos are the names that package syscall has on Linux, macOS, the BSDs and Windows alike. Where two have the
// same number, the first is the one that is written.
var errnos = [...]struct {
	name  string
	errno syscall.Errno
}{
	{"E2BIG", syscall.E2BIG},
	{"EACCES", syscall.EACCES},
	{"EADDRINUSE", syscall.EADDRINUSE},
	{"EADDRNOTAVAIL", syscall.EADDRNOTAVAIL},
	{"EAFNOSUPPORT", syscall.EAFNOSUPPORT},
	{"EAGAIN", syscall.EAGAIN},
	{"EALREADY", syscall.EALREADY},
	{"EBADF", syscall.EBADF},
	{"EBADMSG", syscall.EBADMSG},
	{"EBUSY", syscall.EBUSY},
	{"ECANCELED", syscall.ECANCELED},
	{"ECHILD", syscall.ECHILD},
	{"ECONNABORTED", syscall.ECONNABORTED},
	{"ECONNREFUSED", syscall.ECONNREFUSED},
	{"ECONNRESET", syscall.ECONNRESET},
	{"EDEADLK", syscall.EDEADLK},
	{"EDESTADDRREQ", syscall.EDESTADDRREQ},
	{"EDOM", syscall.EDOM},
	{"EDQUOT", syscall.EDQUOT},
	{"EEXIST", syscall.EEXIST},
	{"EFAULT", syscall.EFAULT},
	{"EFBIG", syscall.EFBIG},
	{"EHOSTDOWN", syscall.EHOSTDOWN},
	{"EHOSTUNREACH", syscall.EHOSTUNREACH},
	{"EIDRM", syscall.EIDRM},
	{"EILSEQ", syscall.EILSEQ},
	{"EINPROGRESS", syscall.EINPROGRESS},
	{"EINTR", syscall.EINTR},
	{"EINVAL", syscall.EINVAL},
	{"EIO", syscall.EIO},
	{"EISCONN", syscall.EISCONN},
	{"EISDIR", syscall.EISDIR},
	{"ELOOP", syscall.ELOOP},
	{"EMFILE", syscall.EMFILE},
	{"EMLINK", syscall.EMLINK},
	{"EMSGSIZE", syscall.EMSGSIZE},
	{"ENAMETOOLONG", syscall.ENAMETOOLONG},
	{"ENETDOWN", syscall.ENETDOWN},
	{"ENETRESET", syscall.ENETRESET},
	{"ENETUNREACH", syscall.ENETUNREACH},
	{"ENFILE", syscall.ENFILE},
	{"ENOBUFS", syscall.ENOBUFS},
	{"ENODEV", syscall.ENODEV},
	{"ENOENT", syscall.ENOENT},
	{"ENOEXEC", syscall.ENOEXEC},
	{"ENOLCK", syscall.ENOLCK},
	{"ENOMEM", syscall.ENOMEM},
	{"ENOMSG", syscall.ENOMSG},
	{"ENOPROTOOPT", syscall.ENOPROTOOPT},
	{"ENOSPC", syscall.ENOSPC},
	{"ENOSYS", syscall.ENOSYS},
	{"ENOTBLK", syscall.ENOTBLK},
	{"ENOTCONN", syscall.ENOTCONN},
	{"ENOTDIR", syscall.ENOTDIR},
	{"ENOTEMPTY", syscall.ENOTEMPTY},
	{"ENOTSOCK", syscall.ENOTSOCK},
	{"ENOTTY", syscall.ENOTTY},
	{"ENXIO", syscall.ENXIO},
	{"EOPNOTSUPP", syscall.EOPNOTSUPP},
	{"ENOTSUP", syscall.ENOTSUP}, // EOPNOTSUPP on Linux
	{"EOVERFLOW", syscall.EOVERFLOW},
	{"EPERM", syscall.EPERM},
	{"EPFNOSUPPORT", syscall.EPFNOSUPPORT},
	{"EPIPE", syscall.EPIPE},
	{"EPROTO", syscall.EPROTO},
	{"EPROTONOSUPPORT", syscall.EPROTONOSUPPORT},
	{"EPROTOTYPE", syscall.EPROTOTYPE},
	{"ERANGE", syscall.ERANGE},
	{"EREMOTE", syscall.EREMOTE},
	{"EROFS", syscall.EROFS},
	{"ESHUTDOWN", syscall.ESHUTDOWN},
	{"ESOCKTNOSUPPORT", syscall.ESOCKTNOSUPPORT},
	{"ESPIPE", syscall.ESPIPE},
	{"ESRCH", syscall.ESRCH},
	{"ESTALE", syscall.ESTALE},
	{"ETIMEDOUT", syscall.ETIMEDOUT},
	{"ETOOMANYREFS", syscall.ETOOMANYREFS},
	{"ETXTBSY", syscall.ETXTBSY},
	{"EUSERS", syscall.EUSERS},
	{"EWOULDBLOCK", syscall.EWOULDBLOCK},
	{"EXDEV", syscall.EXDEV},
}

// errnoName is the errno's name, or its number if the table has none.
func errnoName(errno syscall.Errno) string {
	for _, e := range errnos {
		if e.errno == errno {
			return e.name
		}
	}
	return strconv.FormatUint(uint64(errno), 10)
}

// errnoNamed reads a name or a number above 0; 0 if it is neither.
func errnoNamed(word string) syscall.Errno {
	for _, e := range errnos {
		if e.name == word {
			return e.errno
		}
	}
	n, ok := parseNumber(word, 1)
	if !ok {
		return 0
	}
	return syscall.Errno(n)
}
