//go:build unix

package programs

import (
	"cmp"
	"os"
	"os/exec"
	"syscall"
)

// Exec has a program take the place of this process, with the library and the device in a Guise: signals and the exit
// status are its own. If the Guise is empty, that of the environment holds, and then what each program that is started
// needs. It returns only if it fails.
func (l Library) Exec(args []string, as Guise) error {
	if err := cmp.Or(checkSystem(), l.Check()); err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, args, l.environmentAs(os.Environ(), as))}
}
