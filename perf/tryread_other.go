//go:build !unix

package perf

import "net"

// A tryReader reads from a TCP connection without waiting, which is not possible here.
type tryReader struct{}

func newTryReader(net.Conn) *tryReader { return nil }

func (*tryReader) read([]byte) (n int, ok bool, err error) { return 0, false, nil }
