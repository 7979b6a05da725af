package datagram

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// MTU is how long the payload of a datagram may be, in bytes. With the header it is longer than what a packet on
// Ethernet holds: IP fragments it.
const MTU = 4096

// HeaderLen is the length of a [Header], in bytes.
const HeaderLen = 40

const (
	magic   = 'i'<<24 | 'w'<<16 | 'u'<<8 | 'd'
	version = 1
)

// Flags of a Header.
const (
	flagSolicited = 1 << iota
	flagImmediate
	flagsKnown = flagSolicited | flagImmediate
)

// A GID is an address of IPv6, or one of IPv4 as IPv6 has it.
type GID [16]byte

// A Header is what a datagram begins with: in network order
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|              magic: 'i' 'w' 'u' 'd'                           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  version: 1   |       number of the QP that it is for         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| 0         |I|S|       number of the QP that sends             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                           Q_Key                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|              immediate data, if I is set                      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           reserved            |    length of the payload      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|              GID that it is sent to, 16 bytes                |
//
// The sender is where IP says that the datagram comes from, and that port has to be the one in the sender's number: so
// no answer goes to a place that has sent nothing.
type Header struct {
	Destination, Source uint32 // QP numbers, of 24 bits
	Solicited           bool
	HasImmediate        bool
	Immediate           [4]byte
	QKey                uint32
	To                  GID
}

// Append appends a header, for a payload of n bytes.
func (h *Header) Append(b []byte, n int) []byte {
	b = binary.BigEndian.AppendUint32(b, magic)
	b = binary.BigEndian.AppendUint32(b, version<<24|h.Destination)
	b = binary.BigEndian.AppendUint32(b, uint32(h.flags())<<24|h.Source)
	b = binary.BigEndian.AppendUint32(b, h.QKey)
	b = append(b, h.Immediate[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	return append(b, h.To[:]...)
}

func (h *Header) flags() (flags byte) {
	if h.Solicited {
		flags |= flagSolicited
	}
	if h.HasImmediate {
		flags |= flagImmediate
	}
	return flags
}

// Parse reads a datagram, and returns its payload, which is part of b. It reports false for one that is not ours, or of
// a version that is not known, or is not as long as it says.
func Parse(b []byte) (h Header, payload []byte, ok bool) {
	if len(b) < HeaderLen || len(b) > HeaderLen+MTU || binary.BigEndian.Uint32(b) != magic ||
		b[4] != version || b[8]&^flagsKnown != 0 {
		return h, nil, false
	}
	payload = b[HeaderLen:]
	if int(binary.BigEndian.Uint16(b[22:])) != len(payload) {
		return h, nil, false
	}
	return Header{
		Destination: binary.BigEndian.Uint32(b[4:]) & ulpdata.QPNumberMask,
		Source:      binary.BigEndian.Uint32(b[8:]) & ulpdata.QPNumberMask,
		Solicited:   b[8]&flagSolicited != 0, HasImmediate: b[8]&flagImmediate != 0,
		QKey: binary.BigEndian.Uint32(b[12:]), Immediate: [4]byte(b[16:]), To: GID(b[24:]),
	}, payload, true
}
