package rdmap

import (
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
)

// A Code is what a Terminate reports: the layer which found the error
// (4 bits), the error type (4 bits) and the error code (8 bits).
type Code uint16

// The layers of RFC 5040, Figure 9.
const (
	LayerRDMAP = 0
	LayerDDP   = 1
	LayerLLP   = 2
)

// The error types of the RDMAP layer. RFC 5040, Figure 9.
const (
	ETypeLocalCatastrophic = 0
	ETypeRemoteProtection  = 1
	ETypeRemoteOperation   = 2
)

// ETypeTaggedBuffer is the error type of the DDP layer for Tagged Buffers. RFC 5041, section 7.2.
const ETypeTaggedBuffer = 1

// The codes of the RDMAP layer. RFC 5040, Figure 9.
const ( // [P14]
	CodeLocalCatastrophic Code = 0x0000 // and so is any other error code in the low byte

	CodeInvalidSTag                 Code = 0x0100
	CodeBaseOrBounds                Code = 0x0101
	CodeAccessRights                Code = 0x0102
	CodeSTagNotAssociated           Code = 0x0103
	CodeTOWrap                      Code = 0x0104
	CodeProtectionCannotInvalidate  Code = 0x0109
	CodeRemoteProtectionUnspecified Code = 0x01ff

	CodeInvalidVersion             Code = 0x0205
	CodeUnexpectedOpcode           Code = 0x0206
	CodeCatastrophicStream         Code = 0x0207
	CodeCatastrophicGlobal         Code = 0x0208
	CodeOperationCannotInvalidate  Code = 0x0209
	CodeRemoteOperationUnspecified Code = 0x02ff
)

// The codes of the DDP layer. RFC 5041, section 7.2.
const (
	CodeDDPLocalCatastrophic Code = Code(ddp.CodeLocalCatastrophic)

	CodeDDPInvalidSTag          Code = Code(ddp.CodeInvalidSTag)
	CodeDDPBaseOrBounds         Code = Code(ddp.CodeBaseOrBounds)
	CodeDDPSTagNotAssociated    Code = Code(ddp.CodeSTagNotAssociated)
	CodeDDPTOWrap               Code = Code(ddp.CodeTOWrap)
	CodeDDPTaggedInvalidVersion Code = Code(ddp.CodeTaggedInvalidVersion)

	CodeDDPInvalidQN              Code = Code(ddp.CodeInvalidQN)
	CodeDDPInvalidMSNNoBuffer     Code = Code(ddp.CodeInvalidMSNNoBuffer)
	CodeDDPInvalidMSNRange        Code = Code(ddp.CodeInvalidMSNRange)
	CodeDDPInvalidMO              Code = Code(ddp.CodeInvalidMO)
	CodeDDPMessageTooLong         Code = Code(ddp.CodeMessageTooLong)
	CodeDDPUntaggedInvalidVersion Code = Code(ddp.CodeUntaggedInvalidVersion)
)

// The codes of MPA, the LLP over TCP: see [CodeOfMPA].
const (
	CodeMPAConnectionLost    = layerMPA | Code(mpa.CodeConnectionLost)
	CodeMPACRC               = layerMPA | Code(mpa.CodeCRC)
	CodeMPAMarker            = layerMPA | Code(mpa.CodeMarker)
	CodeMPAStartupFrame      = layerMPA | Code(mpa.CodeStartupFrame)
	CodeMPALocalCatastrophic = layerMPA | Code(mpa.CodeLocalCatastrophic)
	CodeMPAInsufficientIRD   = layerMPA | Code(mpa.CodeInsufficientIRD)
	CodeMPANoMatchingRTR     = layerMPA | Code(mpa.CodeNoMatchingRTR)
)

// layerMPA is layer and error type of MPA's codes: RFC 5044, section 8, and RFC 6581, section 8.
const layerMPA Code = LayerLLP << 12

// CodeOfMPA returns an error code of MPA as a Terminate has it: layer 2 (LLP), error type 0 (MPA).
func CodeOfMPA(c mpa.Code) Code { return layerMPA | Code(c) }

// mpaCode is the reverse; ok is false for the code of another layer, or of another LLP than MPA.
func (c Code) mpaCode() (code mpa.Code, ok bool) { return mpa.Code(c), c&0xff00 == layerMPA }

var codeNames = map[Code]string{
	CodeInvalidSTag:                 "RDMAP/Remote Protection/invalid STag",
	CodeBaseOrBounds:                "RDMAP/Remote Protection/base or bounds violation",
	CodeAccessRights:                "RDMAP/Remote Protection/access rights violation",
	CodeSTagNotAssociated:           "RDMAP/Remote Protection/STag not associated with RDMAP Stream",
	CodeTOWrap:                      "RDMAP/Remote Protection/TO wrap",
	CodeProtectionCannotInvalidate:  "RDMAP/Remote Protection/STag cannot be invalidated",
	CodeRemoteProtectionUnspecified: "RDMAP/Remote Protection/unspecified error",

	CodeInvalidVersion:             "RDMAP/Remote Operation/invalid RDMAP version",
	CodeUnexpectedOpcode:           "RDMAP/Remote Operation/unexpected opcode",
	CodeCatastrophicStream:         "RDMAP/Remote Operation/catastrophic error, localized to RDMAP Stream",
	CodeCatastrophicGlobal:         "RDMAP/Remote Operation/catastrophic error, global",
	CodeOperationCannotInvalidate:  "RDMAP/Remote Operation/STag cannot be invalidated",
	CodeRemoteOperationUnspecified: "RDMAP/Remote Operation/unspecified error",
}

// Layer returns the layer, 0 to 15: see [LayerRDMAP].
func (c Code) Layer() uint8 { return uint8(c >> 12) }

// EType returns the error type, 0 to 15. Its meaning depends on the layer.
func (c Code) EType() uint8 { return uint8(c>>8) & 0xf }

// ErrorCode returns the error code, 0 to 255. Its meaning depends on layer and error type.
func (c Code) ErrorCode() uint8 { return uint8(c) }

// localCatastrophic tells RDMAP's Local Catastrophic Error. RFC 5040, Figure 9:
// it "does not have an error code. Any value in this field is acceptable." [P14]
func (c Code) localCatastrophic() bool {
	return c.Layer() == LayerRDMAP && c.EType() == ETypeLocalCatastrophic
}

// Known reports whether a document gives the code a meaning: RFC 5040, 5041, 5044 or 6581.
func (c Code) Known() bool {
	if m, ok := c.mpaCode(); ok {
		return m.Known()
	}
	_, ok := codeNames[c]
	return ok || c.localCatastrophic() || ddp.Code(c).Known()
}

// String gives the code's name and value, as in
// "RDMAP/Remote Protection/invalid STag (0x0100)".
func (c Code) String() string {
	if c.Layer() == LayerDDP {
		return ddp.Code(c).String()
	}
	return fmt.Sprintf("%s (0x%04x)", c.name(), uint16(c))
}

func (c Code) name() string {
	if m, ok := c.mpaCode(); ok && m.Known() {
		return "LLP/" + m.String()
	}
	if name, ok := codeNames[c]; ok {
		return name
	}
	switch {
	case c.localCatastrophic():
		return "RDMAP/Local Catastrophic"
	case c.Layer() == LayerRDMAP && c.EType() == ETypeRemoteProtection:
		return "RDMAP/Remote Protection/unknown"
	case c.Layer() == LayerRDMAP && c.EType() == ETypeRemoteOperation:
		return "RDMAP/Remote Operation/unknown"
	case c.Layer() == LayerRDMAP:
		return "RDMAP/unknown"
	case c.Layer() == LayerLLP:
		return "LLP/unknown"
	}
	return "unknown layer"
}
