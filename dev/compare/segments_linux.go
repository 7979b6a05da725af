package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

const limitsSegments = true

// limitSegments has a socket's segments be those of an Ethernet, in both directions, and sets its congestion control.
// What a listener accepts has both, too.
func limitSegments(c syscall.RawConn, cc string) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, realSegment)
	})
	return errors.Join(err, failed, setCongestion(c, cc))
}

func setCongestion(c syscall.RawConn, cc string) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, cc)
	})
	return errors.Join(err, failed)
}
