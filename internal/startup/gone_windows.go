package startup

import "syscall"

// goneErrors has, beside the system's own, the errors that connections which are no sockets share with other systems.
var goneErrors = append(streamEnds, syscall.WSAECONNRESET, syscall.WSAECONNABORTED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE)
