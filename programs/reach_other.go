//go:build !linux

package programs

// privileges is for systems that have a library.
func privileges(string) string { return "" }
