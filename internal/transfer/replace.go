package transfer

import (
	"errors"
	"io/fs"
	"os"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// mayReplace refuses to put a file in the place of what is none, also with --force: a device or a pipe that has gone is
// missed by everybody who uses it. A symbolic link is replaced itself, and so only if it can be seen to lead to nothing
// of that kind.
func mayReplace(root *os.Root, at string) error {
	info, err := root.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink == 0:
		return special(info)
	}
	switch info, err = root.Stat(at); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(message.NotRegular, "there is a symbolic link that leads elsewhere, which --force does not replace")
	case info.IsDir():
		return nil
	}
	return special(info)
}

// special refuses what is no regular file.
func special(info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fail(message.NotRegular, "there is "+kindOf(info.Mode())+", which --force does not replace")
}
