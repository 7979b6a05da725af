//go:build !linux

package transfer

import (
	"errors"
	"os"
)

// renameNew would have what has a name in one directory have a name in another, or in the same, that nothing has.
func renameNew(*os.File, string, *os.File, string) error { return errors.ErrUnsupported }
