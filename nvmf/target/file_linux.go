package target

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// punch makes a hole, which reads as zero.
func punch(f *os.File, off, n int64) error {
	return fallocate(f, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// zero has bytes read as zero, and stay reserved.
func zero(f *os.File, off, n int64) error {
	return fallocate(f, unix.FALLOC_FL_ZERO_RANGE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// fallocate has no error of a system that knows the call, but not for such a file, beside errors.ErrUnsupported.
func fallocate(f *os.File, mode uint32, off, n int64) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for {
			if failed = unix.Fallocate(int(fd), mode, off, n); !errors.Is(failed, syscall.EINTR) {
				return
			}
		}
	})
	if err != nil || failed == nil {
		return err
	}
	if errors.Is(failed, syscall.EINVAL) || errors.Is(failed, syscall.ENODEV) {
		failed = errors.ErrUnsupported // a file system, or a device, that has no such thing for these bytes
	}
	return &os.PathError{Op: "fallocate", Path: f.Name(), Err: failed}
}
