//go:build linux && (386 || s390x || race)

package tcp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// readNow and writeNow are those of nowait_linux.go, for all versions of the system and for the race detector.
func readNow(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

func writeNow(fd int, b []byte, flags int) (int, error) {
	if flags == 0 {
		return syscall.Write(fd, b)
	}
	return unix.SendmsgN(fd, b, nil, nil, flags)
}
