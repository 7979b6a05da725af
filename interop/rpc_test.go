//go:build interop

package interop_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// Programs of RPC (RFC 5531), and procedures of them that return something.
const (
	programBind  = 100000 // rpcbind: RFC 1833
	programMount = 100005 // RFC 1813, appendix I
	mountMNT     = 1
	authSys      = 1
)

// nfsRoot is the file handle of an export of Linux with fsid=0: version 1, by a number, of the root, which is 0.
var nfsRoot = []byte{1, 0, 1, 0, 0, 0, 0, 0}

// serveRPC stands in for rpcbind, with which a kernel registers its lockd, and for mountd, of which a client of NFS version
// 3 asks the root's file handle. It returns its port.
func serveRPC(t *testing.T) (port string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go answerRPC(c)
		}
	}()
	_, port, err = net.SplitHostPort(ln.Addr().String())
	testrig.Must(t, err)
	return port
}

// answerRPC answers the calls of a connection. Each is behind its length, of which the highest bit tells that it is whole.
func answerRPC(c net.Conn) {
	defer c.Close()
	for {
		var length [4]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		call := make([]byte, binary.BigEndian.Uint32(length[:])&0xffff)
		if _, err := io.ReadFull(c, call); err != nil || len(call) < 24 {
			return
		}
		reply := append(call[:4:4], words(1, 0, 0, 0, 0)...) // accepted, without a verifier
		reply = append(reply, results(binary.BigEndian.Uint32(call[12:]), binary.BigEndian.Uint32(call[20:]))...)
		if _, err := c.Write(append(words(1<<31|uint32(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// results are those of a procedure. All that a kernel asks of rpcbind has succeeded.
func results(program, procedure uint32) []byte {
	switch {
	case program == programBind && procedure > 0:
		return words(1)
	case program == programMount && procedure == mountMNT:
		return append(append(words(0, uint32(len(nfsRoot))), nfsRoot...), words(1, authSys)...)
	}
	return nil
}

func words(all ...uint32) (b []byte) {
	for _, w := range all {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}
