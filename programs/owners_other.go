//go:build !linux

package programs

// Narrow does nothing on systems that have no library.
func Narrow() (restore func()) { return func() {} }

// Trust checks whose the library is, on systems that have one.
func (Library) Trust() (notice string, err error) { return "", nil }
