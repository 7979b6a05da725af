//go:build !unix

package programs

// Exec has a program take the place of this process, where there is such a thing.
func (l Library) Exec([]string, Guise) error { return ErrSystem }
