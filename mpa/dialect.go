package mpa

import "fmt"

// Dialect is a way of starting MPA. The zero value is none of them.
type Dialect uint8

// The dialects.
const (
	// DialectRFC5044 is the Request/Reply startup of RFC 5044, revision 1.
	DialectRFC5044 Dialect = iota + 1
	// DialectRFC6581 is the enhanced startup of RFC 6581, revision 2.
	DialectRFC6581
)

// Revisions of MPA, as in the Rev field.
const (
	revision1 = 1
	revision2 = 2
)

// dialect is what the machines need to know of a dialect.
type dialect struct {
	name     string
	revision uint8 // Rev of our frames, unless it is echoed
	echo     bool  // a Reply repeats the Request's Rev
	enhanced bool  // the Private Data begins with Enhanced
	ulpData  int   // octets of Private Data left to the ULP
	version  uint8 // DDP and RDMAP version that goes with it
}

var dialects = [...]dialect{
	0:              {name: "no dialect"},
	DialectRFC5044: {name: "RFC 5044", revision: revision1, echo: true, ulpData: MaxPrivateData, version: 1},
	DialectRFC6581: {name: "RFC 6581", revision: revision2, enhanced: true, ulpData: MaxEnhancedPrivateData, version: 1},
}

func (d Dialect) row() dialect {
	if int(d) < len(dialects) {
		return dialects[d]
	}
	return dialect{name: fmt.Sprintf("dialect %d", uint8(d))}
}

// String returns the name of the document that describes the dialect.
func (d Dialect) String() string { return d.row().name }

// sBit is what a row of recognized asks of the S bit.
type sBit uint8

const (
	sAny sBit = iota
	sClear
	sSet
)

func (s sBit) matches(set bool) bool { return s == sAny || (s == sSet) == set }

// recognized tells a received frame's dialect by its Rev and S. The first row that
// matches decides.
//
// RFC 6581, Section 6: "To use any enhanced connection establishment feature, this
// MUST be set to two or higher. [...] A host accepting MPA connections MUST
// continue to accept MPA Requests with version one, even if it supports version
// two." [E01] [E02]
var recognized = [...]struct {
	low, high uint8 // Rev
	s         sBit
	dialect   Dialect
}{
	{1, 1, sAny, DialectRFC5044},   // S is a reserved bit in revision 1 [Q06]
	{2, 2, sClear, DialectRFC5044}, // nothing enhanced is wanted
	{2, 255, sSet, DialectRFC6581}, // "two or higher"
}

// dialectOf returns the dialect of a received startup frame.
//
// RFC 5044, Section 7.1.1: "If the MPA receiver cannot interoperate with the
// received version, then it MUST close the connection and report an error
// locally." [Q07]
func dialectOf(rev uint8, s bool) (Dialect, *Error) {
	for _, row := range recognized {
		if row.low <= rev && rev <= row.high && row.s.matches(s) {
			return row.dialect, nil
		}
	}
	return 0, &Error{
		Code:   CodeStartupFrame,
		Offset: startupRev,
		Field:  "Rev",
		Reason: fmt.Sprintf("revision %d is not served", rev),
		Hint:   revisionHint(rev),
	}
}

func revisionHint(rev uint8) string {
	if rev == 0 {
		return "revision 0 is the RDMA Consortium's MPA, with DDP and RDMAP version 0; have the peer use revision 1 or 2"
	}
	return "revisions 1 and 2 are, and higher ones with S=1; have the peer use one of them"
}
