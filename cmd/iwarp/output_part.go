package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp/internal/transfer"
)

// openPart opens a file to write under a name of its own beside path, as cp does: it gets its name when it is complete.
// What is no regular file is opened itself, and so is one in a directory that takes no new files. A new file has the
// mode.
func openPart(path string, mode fs.FileMode) (*output, error) {
	to := path
	if behind, err := filepath.EvalSymlinks(path); err == nil {
		to = behind
	}
	info, err := os.Lstat(to)
	there := err == nil
	switch {
	case there && !info.Mode().IsRegular():
		return openItself(path, mode)
	case there:
		if err := writable(path); err != nil {
			return nil, err
		}
	}
	o, err := openItself(filepath.Join(filepath.Dir(to), transfer.PartName(filepath.Base(to))), mode)
	if err != nil {
		return openItself(path, mode) // whose error has the name that was asked for
	}
	if there {
		_ = o.Chmod(info.Mode().Perm()) // as well as the system can
	}
	o.to = to
	return o, nil
}

// writable refuses a file that may not be written, which a new one in its place would be.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// openItself opens a file, or makes it.
func openItself(path string, mode fs.FileMode) (*output, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	made := err == nil
	if errors.Is(err, fs.ErrExist) {
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, mode)
	}
	if err != nil {
		return nil, err
	}
	return &output{File: f, made: made}, nil
}

// complete closes the file, which has all that it is to have, and gives it its name.
func (o *output) complete() error {
	if err := o.Close(); err != nil {
		return err
	}
	if o.to == "" {
		return nil
	}
	return os.Rename(o.Name(), o.to)
}

// remove closes and removes a file that is not complete, unless it had its name before.
func (o *output) remove() {
	_ = o.Close()
	if o.to != "" || o.made {
		_ = os.Remove(o.Name())
	}
}

// cut says where a file is that is not complete.
func (o *output) cut() error {
	if info, err := os.Stat(o.Name()); err != nil || !info.Mode().IsRegular() {
		return nil // a pipe or a device
	}
	return fmt.Errorf("what came before that is in %s", o.Name())
}
