// Package message is what rdma-core's rping sends in its Sends, for all who speak it.
package message

import (
	"encoding/binary"
	"fmt"
)

// Len is the length of every Send of rping, in bytes.
const Len = 16

// An Advert is a Send of rping: it tells the peer of a buffer. From the server, which
// answers each of the client's with one, its fields mean nothing: it is a "go ahead".
//
//	 0               8           12          16
//	+---------------+-----------+-----------+
//	|       TO      |   STag    |  length   |
//	+---------------+-----------+-----------+
type Advert struct {
	TO     uint64
	STag   uint32
	Length uint32 // bytes
}

// Append appends the advert's Len bytes.
func (a Advert) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, a.TO)
	dst = binary.BigEndian.AppendUint32(dst, a.STag)
	return binary.BigEndian.AppendUint32(dst, a.Length)
}

// ParseAdvert reads an advert, which is all of b.
func ParseAdvert(b []byte) (Advert, error) {
	if len(b) != Len {
		return Advert{}, fmt.Errorf("rping: the peer sent a message of length %d: each has %d", len(b), Len)
	}
	return Advert{
		TO:     binary.BigEndian.Uint64(b),
		STag:   binary.BigEndian.Uint32(b[8:]),
		Length: binary.BigEndian.Uint32(b[12:]),
	}, nil
}
