//go:build !windows

package neterr

import "syscall"

var resets, aborts = []error{syscall.ECONNRESET}, []error(nil)
