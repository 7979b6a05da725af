package rdmap

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/ddp"
)

// The RDMAP Control Field, the first byte of DDP's RsvdULP. RFC 5040, section 4.1.
//
//	 0 1 2 3 4 5 6 7
//	+-+-+-+-+-+-+-+-+
//	| RV|Rsv| Opcode|
//	+-+-+-+-+-+-+-+-+
const (
	controlVersionShift = 6
	controlOpcode       = 0x0f
)

// An Opcode says which of RDMAP's messages a segment belongs to, 0 to 15.
type Opcode uint8

// The opcodes of RFC 5040, Figure 4, and of RFC 7306, Figure 2.
const ( // [P06]
	OpWrite            Opcode = 0x0
	OpReadRequest      Opcode = 0x1
	OpReadResponse     Opcode = 0x2
	OpSend             Opcode = 0x3
	OpSendInvalidate   Opcode = 0x4
	OpSendSE           Opcode = 0x5
	OpSendSEInvalidate Opcode = 0x6
	OpTerminate        Opcode = 0x7
	OpImmediateData    Opcode = 0x8
	OpImmediateDataSE  Opcode = 0x9
	OpAtomicRequest    Opcode = 0xa
	OpAtomicResponse   Opcode = 0xb
)

// The Queue Numbers of RFC 5040, section 3.1, and of RFC 7306, section 4.1.
const ( // [P01]
	QNSend      = 0 // the four Sends, Immediate Data
	QNRead      = 1 // Read Requests, Atomic Requests
	QNTerminate = 2
	QNAtomic    = 3 // Atomic Responses
)

// Queues says what each of them is for.
const Queues = "queue 0 is for Sends and Immediate Data, 1 for Read and Atomic Requests, 2 for Terminates, 3 for Atomic Responses"

// Lengths in bytes of the headers which follow the DDP header.
const (
	ReadRequestLen    = 28 // RFC 5040, section 4.4
	ImmediateDataLen  = 8  // RFC 7306, section 6
	AtomicRequestLen  = 52 // RFC 7306, section 5.2.1
	AtomicResponseLen = 12 // RFC 7306, section 5.2.2; its section 4 says 32, against its figure
)

// Info is what RFC 5040, Figures 4 and 5, and RFC 7306, Figures 2 and 3, lay
// down for an opcode.
type Info struct {
	Name       string
	Tagged     bool   // the DDP model; tagged messages have no queue
	QN         uint32 // Queue Number of an untagged message
	HeaderLen  int    // bytes of the RDMAP header; of a Terminate the least
	Payload    bool   // ULP payload is allowed
	Invalidate bool   // RsvdULP[8:39] is an Invalidate STag
	Solicited  bool   // with Solicited Event
	Extension  bool   // of RFC 7306, known to version 1 only
	Key        string // names the header in JSON; empty if it is not a list of fields
	Response   Opcode // what answers the message; 0, which answers nothing, if nothing does
	Answer     bool   // it is such a response
}

// An entry is all that is told of an opcode: whatever names, shows, counts or checks messages takes it from here.
type entry struct {
	Info
	fields []layout                    // of the header, if it is a list of fields
	text   func(payload []byte) string // the header in words; nil: the keys and values of its fields
}

// opcodes is the table of opcodes. CONTRIBUTING.md tells how to add one.
var opcodes = [...]entry{
	OpWrite: {Info: Info{Name: "RDMA Write", Tagged: true, Payload: true}},
	OpReadRequest: {
		Info: Info{Name: "RDMA Read Request", QN: QNRead, HeaderLen: ReadRequestLen, Key: "read_request",
			Response: OpReadResponse},
		fields: readRequestFields, text: readRequestText,
	},
	OpReadResponse:   {Info: Info{Name: "RDMA Read Response", Tagged: true, Payload: true, Answer: true}},
	OpSend:           {Info: Info{Name: "Send", QN: QNSend, Payload: true}},
	OpSendInvalidate: {Info: Info{Name: "Send with Invalidate", QN: QNSend, Payload: true, Invalidate: true}},
	OpSendSE:         {Info: Info{Name: "Send with SE", QN: QNSend, Payload: true, Solicited: true}},
	OpSendSEInvalidate: {Info: Info{Name: "Send with SE and Invalidate", QN: QNSend, Payload: true,
		Invalidate: true, Solicited: true}},
	OpTerminate: {Info: Info{Name: "Terminate", QN: QNTerminate, HeaderLen: TerminateMinLen}},
	OpImmediateData: {
		Info: Info{Name: "Immediate Data", QN: QNSend, HeaderLen: ImmediateDataLen,
			Extension: true, Key: "immediate_data"},
		fields: immediateFields, text: immediateText,
	},
	OpImmediateDataSE: {
		Info: Info{Name: "Immediate Data with SE", QN: QNSend, HeaderLen: ImmediateDataLen, Solicited: true,
			Extension: true, Key: "immediate_data"},
		fields: immediateFields, text: immediateText,
	},
	OpAtomicRequest: {
		Info: Info{Name: "Atomic Request", QN: QNRead, HeaderLen: AtomicRequestLen, Extension: true,
			Key: "atomic_request", Response: OpAtomicResponse},
		fields: atomicRequestFields, text: atomicRequestText,
	},
	OpAtomicResponse: {
		Info: Info{Name: "Atomic Response", QN: QNAtomic, HeaderLen: AtomicResponseLen, Extension: true,
			Key: "atomic_response", Answer: true},
		fields: atomicResponseFields, text: atomicResponseText,
	},
}

// Opcodes is how many opcodes there are: all lie below it.
const Opcodes = len(opcodes)

var unknown entry

// Info returns what is laid down for the opcode, and whether it is known.
func (o Opcode) Info() (Info, bool) {
	e := o.entry()
	return e.Info, e != &unknown
}

// entry is the opcode's in the table: of one that is not known it is unknown.
func (o Opcode) entry() *entry {
	if int(o) >= len(opcodes) || opcodes[o].Name == "" { // opcodes need not follow each other without a gap
		return &unknown
	}
	return &opcodes[o]
}

// info is Info without a copy, for what is asked of each message.
func (o Opcode) info() *Info { return &o.entry().Info }

// Solicited reports whether messages of the opcode ask for an event where they are received.
func (o Opcode) Solicited() bool { return o.info().Solicited }

// Extension reports whether the opcode is of RFC 7306.
func (o Opcode) Extension() bool { return o.info().Extension }

// Answers reports whether messages of the opcode answer a request of the end that receives them.
func (o Opcode) Answers() bool { return o.info().Answer }

// String gives the message type's name in the RFC, as in "Send with SE".
func (o Opcode) String() string {
	if e := o.entry(); e != &unknown {
		return e.Name
	}
	return fmt.Sprintf("opcode %d", uint8(o))
}

// WithArticle names the message type as in "a Send" and "an RDMA Write".
func (o Opcode) WithArticle() string {
	name := o.String()
	if strings.HasPrefix(name, "RDMA ") || strings.Contains("AEIOaeio", name[:1]) {
		return "an " + name
	}
	return "a " + name
}

// Control returns the RDMAP Control Field for a version, 0 to 3, and an
// opcode, 0 to 15; higher bits of either are dropped.
//
// RFC 5040, section 4.1: "Bits 26-27; Reserved. MUST be set to zero by sender".
func Control(version uint8, op Opcode) uint8 {
	return version<<controlVersionShift | uint8(op)&controlOpcode
}

// ParseControl takes an RDMAP Control Field apart.
//
// RFC 5040, section 4.1: the reserved bits are "ignored by the receiver".
func ParseControl(c uint8) (version uint8, op Opcode) {
	return c >> controlVersionShift, Opcode(c & controlOpcode)
}

// Header returns a DDP header as SetHeader sets it.
func (o Opcode) Header(version uint8) (h ddp.Header) {
	o.SetHeader(&h, version)
	return h
}

// SetHeader sets, in a DDP header that is zero, what messages of the opcode ask DDP for: the
// model, the queue, both versions and the control field. What differs from
// message to message stays zero: STag and TO, or MSN and the Invalidate STag. An
// opcode which is not known gives an untagged header for queue 0.
//
// RFC 5040, section 4.1: "Figure 4 [...] MUST be used to define the value of the
// Tagged flag"; for all but the Sends with Invalidate, "the Invalidate STag field
// MUST be set to zero on transmit".
func (o Opcode) SetHeader(h *ddp.Header, version uint8) {
	info := o.info()
	h.Tagged, h.Version, h.RsvdULP, h.QN = info.Tagged, version, Control(version, o), info.QN
}

// OpcodeOf returns the opcode of a segment. It may not be a known one.
func OpcodeOf(h *ddp.Header) Opcode {
	_, op := ParseControl(h.RsvdULP)
	return op
}

// InvalidateSTag returns the STag which a segment asks to invalidate. In
// messages other than the Sends with Invalidate there is none.
//
// RFC 5040, section 4.1: for them the field is to be "ignored by the receiver".
func InvalidateSTag(h *ddp.Header) (stag uint32, ok bool) {
	if !OpcodeOf(h).info().Invalidate || h.Tagged {
		return 0, false
	}
	return h.ULP, true
}
