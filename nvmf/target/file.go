package target

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goiwarp/iwarp/internal/filelock"
)

// File is a Backend in a file, or on a block device.
type File struct {
	f        *os.File
	size     int64
	block    int
	readOnly bool
	toZero   bool // discarded bytes are known to read as zero
}

// ErrInUse is wrapped by the error of OpenFile for a file that is a disk already, of this program or of another.
var ErrInUse = errors.New("in use as a disk already")

// OpenFile opens a file or block device of a length that is a multiple of blockSize. A readOnly one is not written to.
// It is locked until Close, where the system has locks, so that no other OpenFile has it at the same time, unless both
// are readOnly. The error wraps iwarp.ErrInvalid for a length that no disk has, and ErrInUse.
func OpenFile(name string, blockSize int, readOnly bool) (*File, error) {
	flags := os.O_RDWR
	if readOnly {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(name, flags, 0)
	if err != nil {
		return nil, err
	}
	var size int64
	if err = own(f, readOnly); err == nil {
		size, err = f.Seek(0, io.SeekEnd) // which a block device has, too
	}
	if err == nil {
		err = checkSize(size, blockSize)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	d := &File{f: f, size: size, block: blockSize, readOnly: readOnly}
	// beyond the end, where there is nothing
	d.toZero = !readOnly && regular(f) && punch(f, size, int64(blockSize)) == nil
	return d, nil
}

// own locks a file. One on a file system without locks is used all the same.
func own(f *os.File, readOnly bool) error {
	kind := filelock.Exclusive
	if readOnly {
		kind = filelock.Shared
	}
	switch err := filelock.Lock(f, kind); {
	case errors.Is(err, filelock.ErrHeld):
		return ErrInUse
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	default:
		return err
	}
}

// regular reports whether a file is no device.
func regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// Size is the length in bytes.
func (d *File) Size() int64 { return d.size }

// BlockSize is the length of a block in bytes.
func (d *File) BlockSize() int { return d.block }

// DiscardsToZero reports whether the system makes holes in the file.
func (d *File) DiscardsToZero() bool { return d.toZero }

// ReadAt reads. The error is io.EOF where the file has become shorter.
func (d *File) ReadAt(p []byte, off int64) (int, error) { return d.f.ReadAt(p, off) }

// WriteAt writes.
func (d *File) WriteAt(p []byte, off int64) (int, error) { return d.f.WriteAt(p, off) }

// Flush has the system make durable what was written.
func (d *File) Flush() error {
	if d.readOnly {
		return nil
	}
	return d.f.Sync()
}

// Close closes the file.
func (d *File) Close() error { return d.f.Close() }

// zeroesLen is how many zeroes are written at a time.
const zeroesLen = 1 << 18

// WriteZeroes asks the system for a hole, or for zeroes, and writes these where it has no such thing.
func (d *File) WriteZeroes(off, n int64, deallocate bool) error {
	way := zero
	if deallocate {
		way = punch
	}
	if err := way(d.f, off, n); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	zeroes := make([]byte, min(n, zeroesLen))
	for n > 0 {
		wrote, err := d.f.WriteAt(zeroes[:min(n, zeroesLen)], off)
		if err != nil {
			return err
		}
		off, n = off+int64(wrote), n-int64(wrote)
	}
	return nil
}

// Discard asks the system for a hole. The error wraps errors.ErrUnsupported where it makes none.
func (d *File) Discard(off, n int64) error { return punch(d.f, off, n) }

// Create makes a file of a length for OpenFile, which takes no room before it is written. A file that is there is an
// error.
func Create(name string, size int64, blockSize int) error {
	if err := checkSize(size, blockSize); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(f.Truncate(size), f.Close()); err != nil {
		_ = os.Remove(name)
	}
	return err
}
