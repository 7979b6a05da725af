//go:build unix

package main

import "golang.org/x/sys/unix"

// otherFiles are the descriptors that are not those of idle connections.
const otherFiles = 440

// maxConnections is how many connections the limit of open files allows with both ends in
// this process. Go has raised that to the hard limit.
func maxConnections() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur < 2*otherFiles {
		return otherFiles / 2
	}
	return int(min(l.Cur-otherFiles, 1<<20) / 2)
}
