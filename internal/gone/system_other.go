//go:build !windows

package gone

import "syscall"

var resets, aborts = []error{syscall.ECONNRESET}, []error(nil)
