//go:build unix

package iwarp_test

import "golang.org/x/sys/unix"

// descriptors asks for as many open descriptors as the system allows and returns
// how many those are.
func descriptors() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	l.Cur = l.Max
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	}
	return int(min(uint64(l.Cur), 1<<30))
}
