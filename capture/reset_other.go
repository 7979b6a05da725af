//go:build !windows

package capture

import (
	"errors"
	"syscall"
)

// isReset reports whether an error of a connection means that the peer has reset it.
func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
