// Package live gives the packets that pass a network interface, as package capture takes them. It needs Linux.
package live

import "errors"

// Any stands for all interfaces together. Their packets begin with IP then, and what is not IP is left out.
const Any = "any"

// DefaultBuffer is how many bytes may wait in the kernel.
const DefaultBuffer = 64 << 20

// Config is what a Source may be told.
type Config struct {
	// Buffer is how many bytes may wait in the kernel; what comes beyond that is dropped. If zero, it is DefaultBuffer.
	// Without CAP_NET_ADMIN it is not more than net.core.rmem_max.
	Buffer int
	// Idle, if not nil, is called when no packet is there, before Next waits for one. An error of it ends Next.
	Idle func() error
}

// ErrSystem is the error of a system whose interfaces this package cannot read.
var ErrSystem = errors.New("only Linux's interfaces can be read directly")
