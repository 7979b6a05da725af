// Package pcapfile is the file that a capture goes into while it is being written, with a bound on its length.
package pcapfile

import (
	"encoding/binary"
	"os"
	"sync"
)

// DefaultLimit is how long a file gets at most, in bytes, where nobody says so.
const DefaultLimit = 256 << 20

// A File takes what a [capture.Writer] writes: whole blocks of pcapng. Its methods may be called by several goroutines.
type File struct {
	file  *os.File
	limit int64

	mu   sync.Mutex
	size int64
	left int64 // left out: once there are some, all that come
}

// On makes a File of one that is open and empty. A limit of 0 is none; the file has its head whatever the limit, if the
// first Write is that.
func On(file *os.File, limit int64) *File { return &File{file: file, limit: limit} }

// Write takes whole packets, and leaves out the first that would go beyond the limit, and all that come after it: a
// capture has no holes.
func (f *File) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fits := f.fitting(b)
	f.left += int64(len(b) - fits)
	n, err := f.file.Write(b[:fits])
	f.size += int64(n)
	if err != nil {
		return n, err
	}
	return len(b), nil
}

// fitting returns how many bytes of b the file has room for, in whole packets.
func (f *File) fitting(b []byte) (n int) {
	switch {
	case f.left > 0:
		return 0
	case f.limit == 0, f.size == 0:
		return len(b)
	}
	for n < len(b) {
		next := n + int(binary.LittleEndian.Uint32(b[n+4:])) // a block of pcapng: its type, and its length
		if f.size+int64(next) > f.limit {
			break
		}
		n = next
	}
	return n
}

// Bytes returns how many bytes the file has, and how many were left out.
func (f *File) Bytes() (size, left int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size, f.left
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
