//go:build unix

package programs

import (
	"os"
	"os/exec"
	"syscall"
)

// Exec has a program take the place of this process, with the library: signals and the exit status are its own. It returns
// only if that fails.
func (l Library) Exec(args []string) error {
	if err := checkSystem(); err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, args, l.Environment(os.Environ()))}
}
