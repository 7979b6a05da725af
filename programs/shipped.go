package programs

import (
	"fmt"
	"os"
	"path/filepath"
)

// shipped is the place of the library that came with the running program, which need not be there.
func shipped() Library {
	file, err := os.Executable()
	if err != nil {
		return Library{}
	}
	return shippedWith(file)
}

// shippedWith is ../lib/iwarp, seen from a program's file.
func shippedWith(program string) Library {
	if file, err := filepath.EvalSymlinks(program); err == nil {
		program = file
	}
	return Library{filepath.Join(filepath.Dir(program), "..", "lib", "iwarp")}
}

// isShipped reports whether the library came with the running program. It belongs to that program, whatever sources the
// user is in, and it is not built again.
func (l Library) isShipped() bool { return l == shipped() && l.built() }

// shippedError says what to do in place of building it.
func (l Library) shippedError() error {
	return fmt.Errorf("the library in %s came with this program, and is not built again: name a directory for another one by IWARP_LIBRARY", l.Dir)
}
