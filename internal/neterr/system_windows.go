package neterr

import "syscall"

// Those of the system, beside those that connections which are no sockets share with other systems.
var (
	resets = []error{syscall.WSAECONNRESET, syscall.ECONNRESET}
	aborts = []error{syscall.WSAECONNABORTED}
)
