package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock locks a byte that no file has, as others may not read what is locked.
func lock(f *os.File, kind Kind) error {
	at := windows.Overlapped{Offset: 1<<32 - 2, OffsetHigh: 1<<31 - 1}
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if kind == Exclusive {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrHeld
	}
	return os.NewSyscallError("LockFileEx", err)
}
