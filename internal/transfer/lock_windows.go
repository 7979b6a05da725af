package transfer

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock locks a file until it is closed, unless somebody has it: an octet that no file has, as others may not read what is locked.
func lock(f *os.File) bool {
	at := windows.Overlapped{Offset: 1<<32 - 2, OffsetHigh: 1<<31 - 1}
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at) == nil
}
