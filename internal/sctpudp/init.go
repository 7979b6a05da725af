package sctpudp

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/sctp"
)

// Parameters of INIT and INIT ACK.
const (
	paramCookie     = 7
	paramAdaptation = 0xC006 // RFC 5061
)

const (
	initLen   = 16 // the fixed part of INIT and INIT ACK
	minWindow = 1500
)

// initFields are what an INIT or INIT ACK says: RFC 9260, section 3.3.2.
type initFields struct {
	tag, window uint32
	out, in     uint16 // streams
	tsn         uint32

	adaptation    uint32
	hasAdaptation bool
	cookie        []byte
}

// parseInit reads the value of an INIT or INIT ACK. It reports false for one that may not be answered but by ABORT.
func parseInit(b []byte) (f initFields, ok bool) {
	if len(b) < initLen {
		return f, false
	}
	f = initFields{
		tag: binary.BigEndian.Uint32(b), window: binary.BigEndian.Uint32(b[4:]),
		out: binary.BigEndian.Uint16(b[8:]), in: binary.BigEndian.Uint16(b[10:]), tsn: binary.BigEndian.Uint32(b[12:]),
	}
	for rest := b[initLen:]; len(rest) >= 4; {
		kind, n := binary.BigEndian.Uint16(rest), int(binary.BigEndian.Uint16(rest[2:]))
		if n < 4 || n > len(rest) {
			return f, false
		}
		f.param(kind, rest[4:n])
		rest = rest[min((n+3)&^3, len(rest)):]
	}
	return f, f.tag != 0 && f.out != 0 && f.in != 0 && f.window >= minWindow
}

// param takes a parameter. All others are for what an association can do without.
func (f *initFields) param(kind uint16, value []byte) {
	switch {
	case kind == paramCookie:
		f.cookie = value
	case kind == paramAdaptation && len(value) == 4:
		f.adaptation, f.hasAdaptation = binary.BigEndian.Uint32(value), true
	}
}

// ddp reports whether the peer supports DDP.
//
// RFC 5043, section 11.1: "an endpoint MUST verify and inspect the Adaptation Indication"; with none, or any other,
// "DDP procedures MUST NOT be performed upon this association."
func (f *initFields) ddp() bool { return f.hasAdaptation && f.adaptation == sctp.AdaptationDDP }

// value returns the value of an INIT or INIT ACK, with our Adaptation Layer Indication.
//
// RFC 5043, section 11.1: "a DDP/SCTP adaptation layer MUST include an adaptation layer indication in its INIT or
// INIT-ACK". Section 8: "The adaptation MUST initialize all of its SCTP associations with the same number of inbound
// and outbound streams."
func (f *initFields) value() []byte {
	b := f.fixed()
	if f.cookie != nil {
		b = binary.BigEndian.AppendUint16(b, paramCookie)
		b = binary.BigEndian.AppendUint16(b, uint16(4+len(f.cookie)))
		b = pad(append(b, f.cookie...))
	}
	if f.hasAdaptation {
		b = binary.BigEndian.AppendUint16(b, paramAdaptation)
		b = binary.BigEndian.AppendUint16(b, 8)
		b = binary.BigEndian.AppendUint32(b, f.adaptation)
	}
	return b
}

func (f *initFields) fixed() []byte {
	b := binary.BigEndian.AppendUint32(nil, f.tag)
	b = binary.BigEndian.AppendUint32(b, f.window)
	b = binary.BigEndian.AppendUint16(b, f.out)
	b = binary.BigEndian.AppendUint16(b, f.in)
	return binary.BigEndian.AppendUint32(b, f.tsn)
}

// chunk returns the fields as an INIT chunk without parameters.
func (f *initFields) chunk() []byte { return appendChunk(nil, chunkInit, 0, f.fixed()) }
