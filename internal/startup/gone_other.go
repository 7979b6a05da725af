//go:build !windows

package startup

import "syscall"

var goneErrors = append(streamEnds, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE)
