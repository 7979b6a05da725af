package pcapfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/filelock"
)

// What Open refuses.
var (
	errLink  = errors.New("it is a link, which is not followed: name the file itself")
	errOther = errors.New("it exists and is not a capture: name another file, or remove it")
)

// Open opens the file of a capture to be written. A new one is only its owner's, as a capture has all that was sent.
// One that is there keeps what it has, and must be empty or a capture; a pipe or a device is taken as it is. A link
// is not followed: somebody else may have made it.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		f, err = openOld(path)
	}
	if err != nil {
		return nil, err
	}
	if err := judge(f, path); err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// openOld opens what is there. A link that is put in its place meanwhile is for judge to see.
func openOld(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = &fs.PathError{Op: "open", Path: path, Err: errLink}
	}
	if err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR, 0)
}

// judge refuses a file that a capture must not replace.
func judge(f *os.File, path string) error {
	named, err := os.Lstat(path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !os.SameFile(named, info):
		return errLink
	case !info.Mode().IsRegular():
		return nil
	}
	return isCapture(f, info.Size())
}

// isCapture refuses a file that has something else.
func isCapture(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	if _, err := capture.Open(io.NewSectionReader(f, 0, size)); err != nil {
		return fmt.Errorf("%w (%w)", errOther, err)
	}
	return nil
}

// Create is Open for who writes the file from its beginning: nobody else may do so until it is closed. The error
// wraps filelock.ErrHeld if another process, or another part of this one, does.
func Create(path string) (*os.File, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := lockAndEmpty(f); err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// lockAndEmpty locks a file and empties it. Others than regular ones cannot be cut short, and may have several writers.
func lockAndEmpty(f *os.File) error {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	if err := filelock.Lock(f, filelock.Exclusive); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return f.Truncate(0)
}
