package mpa

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Enhanced is the Enhanced RDMA Connection Establishment Data at the head of the
// Private Data: RFC 6581, Section 9. [E01]
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
	IRD, ORD uint16
}

// Sizes and values of the enhanced data.
const (
	// EnhancedLen is its size in octets.
	EnhancedLen = 4
	// MaxEnhancedPrivateData is the most Private Data of the ULP behind it. [E01]
	MaxEnhancedPrivateData = MaxPrivateData - EnhancedLen
	// NoNegotiation as an IRD or ORD means that "automatic negotiation of the
	// IRD or ORD is not desired, and that the ULP will be responsible for it":
	// RFC 6581, Section 9.1. [E06]
	NoNegotiation = 0x3fff
)

const (
	flagAC    = 0x8000     // A before IRD, C before ORD
	flagBD    = 0x4000     // B before IRD, D before ORD
	depthMask = 0x3fff     // 14 bits
	maxDepth  = 0x3fff - 1 // the largest that is not NoNegotiation
)

// ParseEnhanced returns the enhanced data at the head of b. The error is an
// [*Error] with code 4 and says that b is too short.
func ParseEnhanced(b []byte) (Enhanced, error) {
	if len(b) < EnhancedLen {
		return Enhanced{}, shortEnhanced(len(b))
	}
	ird, ord := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return Enhanced{
		A: ird&flagAC != 0, B: ird&flagBD != 0, IRD: ird & depthMask,
		C: ord&flagAC != 0, D: ord&flagBD != 0, ORD: ord & depthMask,
	}, nil
}

func shortEnhanced(n int) *Error {
	return &Error{
		Code:   CodeStartupFrame,
		Offset: startupPDLength,
		Field:  "PD_Length",
		Reason: fmt.Sprintf("%d octets of Private Data in a frame with S=1, which must begin with %d octets of enhanced data", n, EnhancedLen),
		Hint:   "the sender sets S without the enhanced data of RFC 6581",
	}
}

// AppendEnhanced appends the enhanced data, whatever its values.
func AppendEnhanced(dst []byte, e *Enhanced) []byte {
	dst = binary.BigEndian.AppendUint16(dst, depthWord(e.IRD, e.A, e.B))
	return binary.BigEndian.AppendUint16(dst, depthWord(e.ORD, e.C, e.D))
}

func depthWord(depth uint16, ac, bd bool) uint16 {
	depth &= depthMask
	if ac {
		depth |= flagAC
	}
	if bd {
		depth |= flagBD
	}
	return depth
}

// RTR returns the kinds of RTR indication that B, C and D name, and none if A is
// not set.
//
// RFC 6581, Section 9.2: "On reception, if Control Flag A is set to 0, then Control
// Flags B, C, and D MUST be ignored." [E07]
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

// peerToPeer returns e with A set, and B, C and D set for the kinds given. [E07]
func (e Enhanced) peerToPeer(kinds RTR) Enhanced {
	e.A, e.B, e.C, e.D = true, kinds&RTRSend != 0, kinds&RTRWrite != 0, kinds&RTRRead != 0
	return e
}

// String returns, for instance, "A ird 32 ord 1 rtr write|read".
func (e Enhanced) String() string {
	s := fmt.Sprintf("ird %s ord %s", depthString(e.IRD), depthString(e.ORD))
	if !e.A {
		return s
	}
	return "A " + s + " rtr " + e.RTR().String()
}

func depthString(n uint16) string {
	if n == NoNegotiation {
		return "not negotiated"
	}
	return fmt.Sprint(n)
}

// RTR is a set of kinds of the Ready to Receive indication, the FPDU by which an
// initiator opens a peer-to-peer connection: RFC 6581, Section 9.2. [E07]
type RTR uint8

// The kinds of RTR indication.
const (
	RTRSend  RTR = 1 << iota // a zero-length Send, flag B
	RTRWrite                 // a zero-length RDMA Write, flag C
	RTRRead                  // a zero-length RDMA Read Request, flag D
)

const rtrAll = RTRSend | RTRWrite | RTRRead

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
