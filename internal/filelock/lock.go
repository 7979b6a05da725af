// Package filelock has one process at a time have a file, or several that only read it: by flock, on Windows by
// LockFileEx, and on systems that have neither not at all. The lock is one of those who ask for it; nobody else is kept
// from the file.
package filelock

import (
	"errors"
	"os"
)

// ErrHeld is the error of a lock that somebody else has.
var ErrHeld = errors.New("another program, or another part of this one, has it locked")

// A Kind is what a lock is for.
type Kind bool

// The kinds.
const (
	Exclusive Kind = false // nobody else has any
	Shared    Kind = true  // others have Shared ones, too
)

// Lock locks an open file until that is closed, and never waits. The error is ErrHeld, or of the system; it wraps
// errors.ErrUnsupported for a file system without locks.
func Lock(f *os.File, kind Kind) error { return lock(f, kind) }
