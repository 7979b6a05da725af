package transfer

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew has what has a name in one directory have a name in another, or in the same, that nothing has.
func renameNew(d *os.File, name string, to *os.File, as string) error {
	err := unix.Renameat2(int(d.Fd()), name, int(to.Fd()), as, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) { // a file system that does not know how
		return errors.ErrUnsupported
	}
	return err
}
