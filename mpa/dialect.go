package mpa

import (
	"fmt"
	"slices"
	"strings"
)

// Dialect is a way of starting MPA. The zero value is none of them.
type Dialect uint8

// The dialects.
const (
	// DialectRFC5044 is the Request/Reply startup of RFC 5044, revision 1.
	DialectRFC5044 Dialect = iota + 1
	// DialectRFC6581 is the enhanced startup of RFC 6581, revision 2.
	DialectRFC6581
	// DialectRtr is revision 1 with the Rtr frame of the 2007 proposal: the
	// Initiator sends it after an accepting Reply, and either side may send the
	// first FPDU then.
	DialectRtr
	// DialectRevision0 is the Request/Reply startup with revision 0, on behalf of
	// an RNIC of the RDMA Consortium: draft-carrier-rddp-rnic-interop-00.
	DialectRevision0
	// DialectStartKey is the Start Key of draft-culley-iwarp-mpa-03. The Initiator
	// is what it calls Passive and the Responder what it calls Active.
	DialectStartKey
)

// Dialects returns all dialects.
func Dialects() []Dialect {
	all := make([]Dialect, 0, len(dialects)-1)
	for d := range dialects[1:] {
		all = append(all, Dialect(d+1))
	}
	return all
}

// Revisions of MPA, as in the Rev field.
const (
	revision0 = 0
	revision1 = 1
	revision2 = 2
)

// dialect is what the machines need to know of a dialect.
type dialect struct {
	name     string
	short    string // for command lines and JSON
	revision uint8  // Rev of our frames, unless it is echoed
	echo     bool   // a Reply repeats the Request's Rev
	sBit     bool   // our frames have S=1
	enhanced bool   // the Private Data begins with Enhanced
	ulpData  int    // bytes of Private Data left to the ULP
	version  uint8  // DDP and RDMAP version that goes with it
	always   bool   // markers and CRCs are used in both directions
	free     bool   // a responder need not wait for an FPDU
	// answers are the dialects that the Reply to our Request may be in, beside
	// this one.
	answers []Dialect
}

var dialects = [...]dialect{
	0: {name: "no dialect", short: "none"},
	DialectRFC5044: {
		name: "RFC 5044", short: "rfc5044", revision: revision1, echo: true, ulpData: MaxPrivateData, version: 1,
		answers: []Dialect{DialectRevision0},
	},
	DialectRFC6581: {
		name: "RFC 6581", short: "rfc6581", revision: revision2, sBit: true, enhanced: true,
		ulpData: MaxEnhancedPrivateData, version: 1,
	},
	DialectRtr: {
		name: "2007 Rtr frame", short: "rtr2007", revision: revision1, sBit: true,
		ulpData: MaxPrivateData, version: 1, free: true,
		answers: []Dialect{DialectRFC5044, DialectRevision0},
	},
	DialectRevision0: {
		name: "RDMAC revision 0", short: "revision0", revision: revision0, ulpData: MaxPrivateData, always: true,
	},
	DialectStartKey: {name: "Start Key", short: "startkey", revision: revision0, ulpData: MaxPrivateData},
}

func (d Dialect) row() dialect {
	if int(d) < len(dialects) {
		return dialects[d]
	}
	return dialect{name: fmt.Sprintf("dialect %d", uint8(d)), short: fmt.Sprintf("dialect%d", uint8(d))}
}

// known reports whether d, which is set, is one of the constants.
func (d Dialect) known() bool { return int(d) < len(dialects) }

// String returns the name of the document, or of the frame, by which the dialect is
// known: "RFC 6581", "Start Key".
func (d Dialect) String() string { return d.row().name }

// MarshalText returns a name without blanks: "rfc6581", "rfc5044", "rtr2007",
// "revision0" or "startkey".
func (d Dialect) MarshalText() ([]byte, error) { return []byte(d.row().short), nil }

// UnmarshalText takes what MarshalText returns.
func (d *Dialect) UnmarshalText(b []byte) error {
	var names []string
	for _, known := range Dialects() {
		short := known.row().short
		if strings.EqualFold(short, string(b)) {
			*d = known
			return nil
		}
		names = append(names, short)
	}
	return fmt.Errorf("mpa: no dialect %q: one of %s", b, strings.Join(names, ", "))
}

// OfRevision returns the Request/Reply dialect of a revision of MPA: 0, 1 or 2.
func OfRevision(rev uint8) (Dialect, error) {
	of := [...]Dialect{revision0: DialectRevision0, revision1: DialectRFC5044, revision2: DialectRFC6581}
	if int(rev) >= len(of) {
		return 0, fmt.Errorf("%w: revision %d: 0, 1 and 2 can be requested", ErrOffer, rev)
	}
	return of[rev], nil
}

// answeredBy reports whether the Reply to a Request of d may be in dialect r.
func (d Dialect) answeredBy(r Dialect) bool {
	return r == d || slices.Contains(d.row().answers, r)
}

// sBit is what a row of recognized asks of the S bit.
type sBit uint8

const (
	sAny sBit = iota
	sClear
	sSet
)

func (s sBit) matches(set bool) bool { return s == sAny || (s == sSet) == set }

// recognized tells a received frame's dialect by its Rev and S. The first row that
// matches, of a dialect that is served, decides.
//
// RFC 6581, section 6: "To use any enhanced connection establishment feature, this
// MUST be set to two or higher. [...] A host accepting MPA connections MUST
// continue to accept MPA Requests with version one, even if it supports version
// two." [E01] [E02]
var recognized = [...]struct {
	low, high uint8 // Rev
	s         sBit
	dialect   Dialect
}{
	{0, 0, sAny, DialectRevision0}, // a permissive RNIC's business [N05]
	{1, 1, sSet, DialectRtr},       // where it is served [T01]
	{1, 1, sAny, DialectRFC5044},   // S is a reserved bit in revision 1 [Q06] [T04]
	{2, 2, sClear, DialectRFC5044}, // nothing enhanced is wanted
	{2, 255, sSet, DialectRFC6581}, // "two or higher"
}

// recognize returns the dialect of a received Request or Reply, or 0 if it is not
// one of those served.
func recognize(rev uint8, s bool, served func(Dialect) bool) Dialect {
	for _, row := range recognized {
		if row.low <= rev && rev <= row.high && row.s.matches(s) && served(row.dialect) {
			return row.dialect
		}
	}
	return 0
}
