//go:build !linux

package transfer

import (
	"errors"
	"os"
)

// renameNew would rename a file in a directory to a name that nothing has.
func renameNew(*os.File, string, string) error { return errors.ErrUnsupported }
