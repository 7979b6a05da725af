package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const limitsSegments = true

// limitSegments has a socket's segments be those of an Ethernet, in both directions.
func limitSegments(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, realSegment) })
	if err != nil {
		return err
	}
	return failed
}
