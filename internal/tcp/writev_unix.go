//go:build unix && !linux

package tcp

import "syscall"

// iovecs needs no memory here: the slices are written one by one.
type iovecs struct{}

// writev writes slices until one is not taken whole.
func (iovecs) writev(fd int, v [][]byte) (n int, err error) {
	for _, b := range v {
		m, err := syscall.Write(fd, b)
		if err != nil && n > 0 {
			return n, nil // the rest is tried again, and the error comes again
		}
		if err != nil {
			return 0, err
		}
		if n += m; m < len(b) {
			break
		}
	}
	return n, nil
}
