package rping

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp"
)

// AdvertLen is the length in octets of every Send of the protocol.
const AdvertLen = 16

// An Advert is a Send of the protocol: it says where a buffer is.
//
//	 0                   1                   2                   3
//	+-------------------------------+---------------+---------------+
//	|        tagged offset          |      STag     |    length     |
//	+-------------------------------+---------------+---------------+
type Advert struct {
	Remote iwarp.Remote
	Length uint32 // octets
}

// Append appends the advert as it is sent.
func (a Advert) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, a.Remote.TO)
	b = binary.BigEndian.AppendUint32(b, a.Remote.STag)
	return binary.BigEndian.AppendUint32(b, a.Length)
}

// ParseAdvert reads an advert.
func ParseAdvert(b []byte) (Advert, error) {
	if len(b) != AdvertLen {
		return Advert{}, fmt.Errorf("rping: the peer sent %d octets: each of its messages has %d", len(b), AdvertLen)
	}
	return Advert{
		Remote: iwarp.Remote{TO: binary.BigEndian.Uint64(b), STag: binary.BigEndian.Uint32(b[8:])},
		Length: binary.BigEndian.Uint32(b[12:]),
	}, nil
}
