//go:build unix

package transfer

import (
	"os"

	"golang.org/x/sys/unix"
)

// noWait keeps an open from waiting for the other end of a pipe.
const noWait = unix.O_NONBLOCK

// renamesOpen tells that a file that is open can be renamed.
const renamesOpen = true

// syncDir has the names in a directory on disk.
func syncDir(d *os.File) error { return d.Sync() }
