package tcp

import "golang.org/x/sys/unix"

// yieldThread lets other threads have this processor. It is so short that the runtime need not know of it.
func yieldThread() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
