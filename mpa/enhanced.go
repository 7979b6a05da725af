package mpa

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// Enhanced is the Enhanced RDMA Connection Establishment Data at the head of the
// Private Data: RFC 6581, section 9.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|A|B|            IRD            |C|D|            ORD            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Enhanced struct {
	A bool // peer-to-peer connection model; client-server otherwise
	B bool // RTR indication by a zero-length Send
	C bool // RTR indication by a zero-length RDMA Write
	D bool // RTR indication by a zero-length RDMA Read
	// IRD and ORD are the sender's depths of inbound and outbound RDMA Reads, 0
	// to 0x3FFE, or NoNegotiation. Only 14 bits are written.
	IRD, ORD Depth
}

// Sizes and values of the enhanced data.
const (
	// EnhancedLen is the size of the enhanced data in bytes.
	EnhancedLen = 4
	// MaxEnhancedPrivateData is the most Private Data, in bytes, that a ULP can add to
	// the enhanced data.
	MaxEnhancedPrivateData = MaxPrivateData - EnhancedLen
)

const (
	flagAC    = 0x8000 // A before IRD, C before ORD
	flagBD    = 0x4000 // B before IRD, D before ORD
	depthMask = 0x3fff // 14 bits
)

// ParseEnhanced returns the enhanced data at the head of b. The error is an
// [*Error] with code 4 and says that b is too short.
func ParseEnhanced(b []byte) (Enhanced, error) {
	if len(b) < EnhancedLen {
		return Enhanced{}, shortEnhanced(len(b))
	}
	ird, ord := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return Enhanced{
		A: ird&flagAC != 0, B: ird&flagBD != 0, IRD: Depth(ird & depthMask),
		C: ord&flagAC != 0, D: ord&flagBD != 0, ORD: Depth(ord & depthMask),
	}, nil
}

func shortEnhanced(n int) *Error {
	return &Error{
		Code:   CodeStartupFrame,
		Offset: startupPDLength,
		Field:  "PD_Length",
		Reason: fmt.Sprintf("%s of Private Data in a frame with S=1, which must begin with %d bytes of enhanced data",
			wording.Bytes(n), EnhancedLen),
		Hint: "the sender sets S without the enhanced data of RFC 6581",
	}
}

// AppendEnhanced appends the enhanced data, whatever its values.
func AppendEnhanced(dst []byte, e *Enhanced) []byte {
	dst = binary.BigEndian.AppendUint16(dst, depthWord(e.IRD, e.A, e.B))
	return binary.BigEndian.AppendUint16(dst, depthWord(e.ORD, e.C, e.D))
}

func depthWord(depth Depth, ac, bd bool) uint16 {
	word := uint16(depth) & depthMask
	if ac {
		word |= flagAC
	}
	if bd {
		word |= flagBD
	}
	return word
}

// RTR returns the kinds of RTR indication that B, C and D name, and none if A is
// not set.
//
// RFC 6581, section 9.2: "On reception, if Control Flag A is set to 0, then Control
// Flags B, C, and D MUST be ignored."
func (e Enhanced) RTR() (kinds RTR) {
	if !e.A {
		return 0
	}
	return rtrIf(e.B, RTRSend) | rtrIf(e.C, RTRWrite) | rtrIf(e.D, RTRRead)
}

func rtrIf(set bool, kind RTR) RTR {
	if set {
		return kind
	}
	return 0
}

// WithRTR returns e with A set, and with those of B, C and D that name the kinds: the
// peer-to-peer model of RFC 6581, section 9.2.
func (e Enhanced) WithRTR(kinds RTR) Enhanced {
	e.A, e.B, e.C, e.D = true, kinds&RTRSend != 0, kinds&RTRWrite != 0, kinds&RTRRead != 0
	return e
}

// Flags returns the letters of the Control Flags that are set, for instance "ACD",
// whether or not A gives B, C and D a meaning.
func (e Enhanced) Flags() string {
	return flags("ABCD", e.A, e.B, e.C, e.D)
}

// flags returns the letters of the flags that are set.
func flags(names string, set ...bool) string {
	var letters []byte
	for i, is := range set {
		if is {
			letters = append(letters, names[i])
		}
	}
	return string(letters)
}

// appendFlags appends flags to a line, each after a space.
func appendFlags(line, flags string) string {
	for _, letter := range flags {
		line += " " + string(letter)
	}
	return line
}

// String returns, for instance, "A ird 32 ord 1 rtr write|read".
func (e Enhanced) String() string {
	s := fmt.Sprintf("ird %v ord %v", e.IRD, e.ORD)
	if !e.A {
		return s
	}
	return "A " + s + " rtr " + e.RTR().String()
}

// RTR is a set of kinds of the Ready to Receive indication, the FPDU by which an
// initiator opens a peer-to-peer connection: RFC 6581, section 9.2.
type RTR uint8

// The kinds of RTR indication.
const (
	RTRSend  RTR = 1 << iota // a zero-length Send, flag B
	RTRWrite                 // a zero-length RDMA Write, flag C
	RTRRead                  // a zero-length RDMA Read Request, flag D
)

const rtrAll = RTRSend | RTRWrite | RTRRead

// The opcodes of RFC 5040, Figure 4, by whose messages RFC 6581 has the connection
// opened.
const (
	opcodeWrite       = 0x0
	opcodeReadRequest = 0x1
	opcodeSend        = 0x3
)

// RTROf returns the kind of RTR indication that a zero-length message of an RDMAP
// opcode is. It is none, 0, for other opcodes, and for a message that is not of zero
// length.
//
// RFC 6581, section 9.2, has the flags stand for "a zero-length FULPDU (Send) RTR
// indication", "a zero-length RDMA Write" and "a zero-length RDMA Read": the other
// three kinds of Send have an effect at the receiver, and are none.
func RTROf[Opcode ~uint8](op Opcode, zeroLength bool) RTR {
	if !zeroLength {
		return 0
	}
	switch op {
	case opcodeSend:
		return RTRSend
	case opcodeWrite:
		return RTRWrite
	case opcodeReadRequest:
		return RTRRead
	}
	return 0
}

// String returns, for instance, "write|read", and "none" for the empty set.
func (r RTR) String() string {
	var names []string
	for _, kind := range []struct {
		bit  RTR
		name string
	}{{RTRSend, "send"}, {RTRWrite, "write"}, {RTRRead, "read"}} {
		if r&kind.bit != 0 {
			names = append(names, kind.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "|")
}

// Depth is a depth of RDMA Reads: an IRD is how many inbound Read Requests an end takes at
// once, an ORD how many outbound ones it has under way at most. RFC 6581, section 9.1,
// sends 14 bits of it: 0 to [MaxDepth], or [NoNegotiation].
type Depth uint16

const (
	// MaxDepth is the largest depth that there is.
	MaxDepth Depth = 0x3fff - 1
	// NoNegotiation in place of an IRD or ORD means that "automatic negotiation of the
	// IRD or ORD is not desired, and that the ULP will be responsible for it": RFC 6581,
	// section 9.1.
	NoNegotiation Depth = 0x3fff
)

// String returns the number, or "not negotiated" for [NoNegotiation].
func (d Depth) String() string {
	if d == NoNegotiation {
		return "not negotiated"
	}
	return strconv.Itoa(int(d))
}
