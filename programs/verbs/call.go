//go:build linux && (amd64 || arm64)

package verbs

import "encoding/binary"

// A GID is an address of IPv6, or one of IPv4 as IPv6 has it.
type GID [16]byte

// A call is the private data with which a QP calls another in the guise of RoCE: in network order
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|              magic: 'i' 'w' 'q' 'p'                           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  version: 1   |       number of the QP that is called         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   reserved    |       number of the QP that calls             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|              GID of the one that calls, 16 octets             |
type call struct {
	to, from uint32
	gid      GID
}

const (
	callMagic   = 'i'<<24 | 'w'<<16 | 'q'<<8 | 'p'
	callVersion = 1
	callLen     = 28
	numberMask  = 1<<24 - 1
)

func (c *call) octets() []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, callLen), callMagic)
	b = binary.BigEndian.AppendUint32(b, callVersion<<24|c.to)
	b = binary.BigEndian.AppendUint32(b, c.from)
	return append(b, c.gid[:]...)
}

// parseCall reads a call. What a later version has after it is no concern of ours.
func parseCall(b []byte) (c call, ok bool) {
	if len(b) < callLen || binary.BigEndian.Uint32(b) != callMagic || b[4] != callVersion {
		return call{}, false
	}
	return call{
		to: binary.BigEndian.Uint32(b[4:]) & numberMask, from: binary.BigEndian.Uint32(b[8:]) & numberMask, gid: GID(b[12:28]),
	}, true
}
