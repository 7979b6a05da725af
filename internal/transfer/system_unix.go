//go:build unix

package transfer

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noWait keeps an open from waiting for the other end of a pipe.
const noWait = unix.O_NONBLOCK

// renamesOpen tells that a file that is open can be renamed.
const renamesOpen = true

// syncDir has the names in a directory on disk, where there is one: other file systems, such as that of processes,
// refuse.
func syncDir(d *os.File) error {
	err := d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}
