package sctp

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

// AdaptationDDP is the Adaptation Indication of DDP: RFC 5043, section 5.1.
const AdaptationDDP = 1

// The Payload Protocol Identifiers of RFC 5043, section 5.2.
const (
	PPIDSegment = 16 // DDP Segment Chunk
	PPIDControl = 17 // DDP Stream Session Control
)

// Sizes, in bytes.
const (
	controlLen = SSNLen + 2 // DDP-SSN and Function Code

	// SSNLen is the length of the DDP-SSN, with which all messages begin.
	SSNLen = 2
	// MaxPrivateData is the most private data of a session control message, with the enhanced data of RFC 6581:
	// RFC 5043, section 5.2.3.
	MaxPrivateData = mpa.MaxPrivateData
	// MinMaxMessage is the largest session control message, and so the least that a carrier has to carry: RFC
	// 5043, section 9.
	MinMaxMessage = controlLen + MaxPrivateData
)

// A Message is a user message of SCTP: one Payload Data Chunk, or several where SCTP has fragmented it.
type Message struct {
	Stream uint16
	PPID   uint32
	// Ordered tells that the U flag was 0. Association.Output never sets it.
	Ordered bool
	Data    []byte
}

// Function returns the Function Code of a session control message, or 0 if the message has none. It may be one that
// is not legal: see ParseControl.
func (m *Message) Function() Function {
	if m.PPID != PPIDControl {
		return 0
	}
	c, _ := ParseControl(m.Data)
	return c.Function
}

// Function is the Function Code of a session control message: RFC 5043, section 5.2.3, and RFC 6581, section 7.
type Function uint16

// The Function Codes.
const ( // [C01]
	FunctionInitiate         Function = 1
	FunctionAccept           Function = 2
	FunctionReject           Function = 3
	FunctionTerminate        Function = 4
	FunctionEnhancedInitiate Function = 5
	FunctionEnhancedAccept   Function = 6
	FunctionEnhancedReject   Function = 7
)

var functionNames = [...]string{
	FunctionInitiate: "Initiate", FunctionAccept: "Accept", FunctionReject: "Reject", FunctionTerminate: "Terminate",
	FunctionEnhancedInitiate: "Enhanced Initiate", FunctionEnhancedAccept: "Enhanced Accept",
	FunctionEnhancedReject: "Enhanced Reject",
}

// String returns the name without "DDP Stream Session".
func (f Function) String() string {
	if f.known() {
		return functionNames[f]
	}
	return fmt.Sprintf("function 0x%04x", uint16(f))
}

func (f Function) known() bool { return f > 0 && int(f) < len(functionNames) }

// IsEnhanced reports whether it is one of RFC 6581's, whose private data begins with enhanced data: see Control.Bare.
func (f Function) IsEnhanced() bool {
	return f >= FunctionEnhancedInitiate && f <= FunctionEnhancedReject
}

// Plain is the function without what RFC 6581 adds to it.
func (f Function) Plain() Function {
	if f.IsEnhanced() {
		return f - FunctionEnhancedInitiate + FunctionInitiate
	}
	return f
}

// as is a function of RFC 5043 as the session's kind has it.
func (f Function) as(enhanced bool) Function {
	if enhanced {
		return f + FunctionEnhancedInitiate - FunctionInitiate
	}
	return f
}

// A Control is a DDP Stream Session Control message: RFC 5043, section 5.2.3.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|            DDP-SSN            |         Function Code         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        Private Data (dependent on the Function Code) ...
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Control struct {
	SSN      uint16
	Function Function
	// Enhanced is the enhanced data in front of the ULP's private data, which the three enhanced functions have.
	Enhanced mpa.Enhanced
	// Bare tells that an Enhanced Reject has no room for enhanced data, which is legal.
	Bare bool
	// PrivateData is the ULP's.
	PrivateData []byte
}

// HasEnhanced reports whether the message has enhanced data.
func (c *Control) HasEnhanced() bool { return c.Function.IsEnhanced() && !c.Bare }

// AppendControl appends a session control message, whatever its values.
func AppendControl(dst []byte, c *Control) []byte {
	dst = binary.BigEndian.AppendUint16(dst, c.SSN)
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Function))
	if c.HasEnhanced() {
		// RFC 6581, section 7: the ULP's private data "MUST follow the enhanced RDMA connection establishment data".
		// [C02]
		dst = mpa.AppendEnhanced(dst, &c.Enhanced)
	}
	return append(dst, c.PrivateData...)
}

// ParseControl returns a session control message, whose PrivateData is in b. The error is a [*Violation].
func ParseControl(b []byte) (c Control, err error) {
	if len(b) < controlLen {
		return c, violation(RuleShort, "length %d, of %d at least", len(b), controlLen)
	}
	c = Control{SSN: binary.BigEndian.Uint16(b), Function: Function(binary.BigEndian.Uint16(b[SSNLen:])),
		PrivateData: b[controlLen:]}
	if v := c.check(); v != nil {
		return c, v
	}
	// RFC 6581, section 7, "uses the first 32 bits of the Private Data field for IRD and ORD negotiation in the"
	// Initiate and the Accept, and so does section 9. That a Reject has them too is what section 9.1 has with MPA,
	// and we send them; of a peer they are not demanded. [C02]
	c.Bare = c.Function == FunctionEnhancedReject && len(c.PrivateData) < mpa.EnhancedLen
	if c.HasEnhanced() {
		if c.Enhanced, err = mpa.ParseEnhanced(c.PrivateData); err != nil {
			return c, violation(RuleEnhancedData, "%v with private data of length %d", c.Function, len(c.PrivateData))
		}
		c.PrivateData = c.PrivateData[mpa.EnhancedLen:]
	}
	return c, nil
}

// check judges the Function Code and the length of the private data, the enhanced data included.
func (c *Control) check() *Violation {
	n := len(c.PrivateData)
	switch {
	case !c.Function.known():
		return violation(RuleFunction, "%v", c.Function)
	case c.Function == FunctionTerminate && n > 0:
		// RFC 5043, section 5.2.3: "Private Data MUST NOT be included in the DDP Stream Session Terminate message."
		// [C02]
		return violation(RuleTerminateData, "length %d", n)
	case n > MaxPrivateData:
		// "Private Data length MUST NOT exceed 512 bytes in any message." RFC 6581, section 7: "including enhanced
		// RDMA connection establishment data." [C02]
		return violation(RulePrivateData, "%v with private data of length %d", c.Function, n)
	}
	return nil
}

// AppendSegment appends a DDP Segment Chunk's user message: RFC 5043, section 5.2.2. The segment may come in parts.
func AppendSegment(dst []byte, ssn uint16, parts ...[]byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, ssn)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}

// SSN returns the DDP-SSN of a message: RFC 5043, section 5.2.1. It reports false if there is no room for one.
func SSN(data []byte) (ssn uint16, ok bool) {
	if len(data) < SSNLen {
		return 0, false
	}
	return binary.BigEndian.Uint16(data), true
}

// MULPDU returns the largest DDP Segment, in bytes, for a carrier that takes messages of maxMessage bytes without
// fragmenting them.
//
// RFC 5043, section 9: it "should be the largest value that can be supported without use of IP or SCTP
// fragmentation, or 516 bytes, whichever is larger", and "SHOULD [be set] below the theoretical maximum in order to
// allow bundling of Control Chunks in the same SCTP packet": 16 bytes are those of a SACK. The 516 bytes are those
// of a session control message, of which the DDP-SSN is a part.
func MULPDU(maxMessage int) int {
	const sack = 16
	return max((maxMessage-sack)&^3, MinMaxMessage) - SSNLen
}
