package transfer

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file in a directory to a name that nothing has.
func renameNew(d *os.File, from, to string) error {
	fd := int(d.Fd())
	err := unix.Renameat2(fd, from, fd, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) { // a file system that does not know how
		return errors.ErrUnsupported
	}
	return err
}
