package target

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/goiwarp/iwarp/internal/capsule"
)

// A Backend is the storage of a namespace. Its methods are called by several goroutines at once, for ranges that
// overlap only if a host asks for that, and never for bytes beyond Size. What a WriteAt, WriteZeroes or Discard has
// done is read by any ReadAt that begins after it has returned.
//
// The host is told of an error that wraps fs.ErrPermission, syscall.EROFS or syscall.ENOSPC as such, and of any other
// as an error of the medium, after which it tries again a few times.
type Backend interface {
	// ReadAt fills p, or fails.
	io.ReaderAt
	io.WriterAt
	// Flush returns when everything is durable that a WriteAt, WriteZeroes or Discard had done before.
	Flush() error
	// WriteZeroes makes the n bytes from off on read as zero. With deallocate they need not stay reserved.
	WriteZeroes(off, n int64, deallocate bool) error
	// Discard says that the n bytes from off on are not needed any more. Afterwards they read as zero, or as they
	// were. If the error wraps errors.ErrUnsupported, the host is told that the Discard succeeded.
	Discard(off, n int64) error
	// Size is the length in bytes, a multiple of BlockSize. It does not change.
	Size() int64
	// BlockSize is 512 or 4096, and does not change. All offsets and lengths are multiples of it.
	BlockSize() int
}

// A Zeroing is a Backend that also tells what a Discard leaves.
type Zeroing interface {
	// DiscardsToZero reports whether what was discarded reads as zero.
	DiscardsToZero() bool
}

// discardsToZero asks a Backend that can tell.
func discardsToZero(b Backend) bool {
	z, ok := b.(Zeroing)
	return ok && z.DiscardsToZero()
}

// statusOf is what a host is told of an error of a Backend; otherwise is that of one that says nothing in particular.
// Only what cannot heal is not to be tried again.
func statusOf(err error, otherwise capsule.Status) capsule.Status {
	switch {
	case err == nil:
		return capsule.Success
	case errors.Is(err, syscall.ENOSPC):
		return capsule.CapacityExceeded
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return capsule.WriteProtected | capsule.DNR
	}
	return otherwise
}
