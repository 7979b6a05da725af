package ulpdata

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// QPCallLen is the size of a [QPCall], and QPRefusalLen that of a [QPRefusal], in bytes.
const (
	QPCallLen    = 28
	QPRefusalLen = 8
)

// QPNumberMask has the bits of a QP number.
const QPNumberMask = 1<<24 - 1

// What a QPCall and a QPRefusal begin with.
const (
	qpMagic    = 'i'<<24 | 'w'<<16 | 'q'<<8 | 'p'
	qpPlain    = 1 // versions
	qpPrefixed = 2
)

// QPCall is how a program that runs under "iwarp run --as roce" asks for the connection of two QPs whose numbers their
// programs have exchanged, in the private data of a Request. It is a convention of this module's.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|              magic: 'i' 'w' 'q' 'p'                           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    version    |       number of the QP that is called         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   reserved    |       number of the QP that calls             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|              GID of the one that calls, 16 bytes             |
//
// Version 2 is that of a connection on which each Send begins with 8 bytes of flags and Immediate Data, version 1 that
// of one without.
type QPCall struct {
	// To and From are the numbers of the QPs, of 24 bits.
	To, From uint32
	// GID is an address of IPv6, or one of IPv4 as IPv6 has it.
	GID [16]byte
	// Prefix tells that Sends, in both directions, begin with 8 bytes that are not for the memory of receives.
	Prefix bool
}

// Append appends the call.
func (c QPCall) Append(dst []byte) []byte {
	version := uint32(qpPlain)
	if c.Prefix {
		version = qpPrefixed
	}
	dst = binary.BigEndian.AppendUint32(dst, qpMagic)
	dst = binary.BigEndian.AppendUint32(dst, version<<24|c.To&QPNumberMask)
	dst = binary.BigEndian.AppendUint32(dst, c.From&QPNumberMask)
	return append(dst, c.GID[:]...)
}

// ParseQPCall reads a call of a version that is known. What may come after it is for later versions to say. Any other
// error wraps [ErrConvention].
func ParseQPCall(b []byte) (c QPCall, err error) {
	if len(b) < QPCallLen {
		return c, tooShort("a call for a QP", len(b), QPCallLen)
	}
	if version := b[4]; binary.BigEndian.Uint32(b) != qpMagic || version != qpPlain && version != qpPrefixed {
		return c, fmt.Errorf("%w: % x begins no call for a QP", ErrConvention, b[:5])
	}
	return QPCall{
		To: binary.BigEndian.Uint32(b[4:]) & QPNumberMask, From: binary.BigEndian.Uint32(b[8:]) & QPNumberMask,
		GID: [16]byte(b[12:]), Prefix: b[4] == qpPrefixed,
	}, nil
}

// String names both QPs.
func (c QPCall) String() string {
	s := fmt.Sprintf("a call of iwarp run --as roce, from QP %#06x at %s for QP %#06x", c.From, c.address(), c.To)
	if c.Prefix {
		s += ", where Sends begin with 8 bytes of flags and Immediate Data"
	}
	return s
}

// address is the GID as an address.
func (c QPCall) address() string {
	if g := c.GID; [12]byte(g[:]) == ([12]byte{10: 0xff, 11: 0xff}) {
		return fmt.Sprintf("%d.%d.%d.%d", g[12], g[13], g[14], g[15])
	}
	var groups [8]string
	for i := range groups {
		groups[i] = fmt.Sprintf("%x", binary.BigEndian.Uint16(c.GID[2*i:]))
	}
	return strings.Join(groups[:], ":")
}

// QPRefusal is what an end that knows all versions of a [QPCall] says when it refuses one, in the private data of its
// Reply. Ends that know only version 1 say nothing. In network order it has the magic of a call, the version, 2, and 3
// bytes of 0.
type QPRefusal struct{}

// Append appends the refusal.
func (QPRefusal) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, qpMagic), qpPrefixed<<24)
}

// ParseQPRefusal reads a refusal. Any error wraps [ErrConvention].
func ParseQPRefusal(b []byte) (QPRefusal, error) {
	if len(b) != QPRefusalLen || string(b) != string(QPRefusal{}.Append(nil)) {
		return QPRefusal{}, fmt.Errorf("%w: %s, and the refusal of a call for a QP has the %d that are known",
			ErrConvention, wording.Bytes(len(b)), QPRefusalLen)
	}
	return QPRefusal{}, nil
}

// String says what it is.
func (QPRefusal) String() string { return "the refusal of a call of iwarp run --as roce" }
