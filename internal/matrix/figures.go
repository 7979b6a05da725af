package matrix

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A Figure is a table of draft-carrier-rddp-rnic-interop-00, section 5. Rows are the
// initiator, "the state of the Marker field in the MPA Request Frame", columns the
// responder and its Reply. Of M=x/y, x is "for the receive direction of the
// initiator" and y of the responder.
type Figure struct {
	Number  int
	Title   string
	Columns []RNIC
	Rows    []FigureRow
}

// A FigureRow is one line of a Figure, with its cells as printed.
type FigureRow struct {
	RNIC
	Cells []string
}

// An RNIC is a heading: a kind of RNIC, and whether it wants markers.
type RNIC struct {
	Kind    mpa.Kind
	Markers bool
}

func (r RNIC) String() string {
	name := r.Kind.String()
	if r.Kind == mpa.KindRDMAC {
		name = "RDMAC"
	}
	return fmt.Sprintf("%s M=%d", name, wording.Bit(r.Markers))
}

var (
	rdmac          = RNIC{mpa.KindRDMAC, true}
	nonPermissive0 = RNIC{mpa.KindNonPermissive, false}
	nonPermissive1 = RNIC{mpa.KindNonPermissive, true}
	permissive0    = RNIC{mpa.KindPermissive, false}
	permissive1    = RNIC{mpa.KindPermissive, true}
)

// Figures are those of the draft: requirement of docs/requirements.md.
var Figures = []Figure{
	{
		Number:  2,
		Title:   "MPA negotiation between an RDMAC RNIC and a Non-permissive IETF RNIC",
		Columns: []RNIC{rdmac, nonPermissive0, nonPermissive1},
		Rows: []FigureRow{
			{rdmac, []string{"V=0 M=1/1", "close", "close"}},
			{nonPermissive0, []string{"close", "V=1 M=0/0", "V=1 M=0/1"}},
			{nonPermissive1, []string{"close", "V=1 M=1/0", "V=1 M=1/1"}},
		},
	},
	{
		Number:  3,
		Title:   "MPA negotiation between an RDMAC RNIC and a Permissive IETF RNIC",
		Columns: []RNIC{rdmac, permissive0, permissive1},
		Rows: []FigureRow{
			{rdmac, []string{"V=0 M=1/1", "N/A", "V=0 M=1/1"}},
			{permissive0, []string{"V=0 M=1/1", "V=1 M=0/0", "V=1 M=0/1"}},
			{permissive1, []string{"V=0 M=1/1", "V=1 M=1/0", "V=1 M=1/1"}},
		},
	},
	{
		Number:  4,
		Title:   "MPA negotiation between a Non-permissive and a Permissive IETF RNIC",
		Columns: []RNIC{nonPermissive0, nonPermissive1, permissive0, permissive1},
		Rows: []FigureRow{
			{nonPermissive0, []string{"V=1 M=0/0", "V=1 M=0/1", "V=1 M=0/0", "V=1 M=0/1"}},
			{nonPermissive1, []string{"V=1 M=1/0", "V=1 M=1/1", "V=1 M=1/0", "V=1 M=1/1"}},
			{permissive0, []string{"V=1 M=0/0", "V=1 M=0/1", "V=1 M=0/0", "V=1 M=0/1"}},
			{permissive1, []string{"V=1 M=1/0", "V=1 M=1/1", "V=1 M=1/0", "V=1 M=1/1"}},
		},
	},
} // [N03]

// notApplicable is the cell of figure 3 that does not exist: "the Permissive IETF RNIC
// will never return an MPA Reply Frame with the M bit set to zero." Running it shows
// that: a permissive responder that wants no markers answers with M=1.
const notApplicable = "N/A"

// refuses is the cell of two RNICs without a version in common.
const refuses = "close"

// row turns a cell into a row.
func (f *Figure) row(line, column int) *Row {
	i, r, cell := f.Rows[line].RNIC, f.Columns[column], f.Rows[line].Cells[column]
	return &Row{
		Name:        fmt.Sprintf("%v -> %v", i, r),
		Requirement: fmt.Sprintf("CARRIER figure %d %s", f.Number, requirements(i, r, cell)),
		Initiator:   Initiator{Offer: i.offer()},
		Responder:   Responder{Kind: r.Kind, Answer: mpa.Answer{Markers: r.Markers}},
		Demanded:    demanded(i, r, cell),
	}
}

func requirements(i, r RNIC, cell string) string {
	switch {
	case cell == refuses:
		return "[N03] [N04]"
	case i.Kind == mpa.KindRDMAC || r.Kind == mpa.KindRDMAC:
		return "[N02] [N03] [N05] [N06]"
	}
	return "[N02] [N03] [N06]"
}

// offer is what an RNIC sends: "a Non-permissive IETF RNIC [...] sends an MPA Request
// Frame with Rev field equal to one", 5.2.2, a permissive one too, 5.3.2, and the
// RDMAC RNIC's ULP one "with Rev field set to zero and the M and C bits set to one",
// 5.2.1.
func (r RNIC) offer() mpa.Offer {
	o := mpa.Offer{Kind: r.Kind, Dialect: mpa.DialectRFC5044, Markers: r.Markers}
	if r.Kind == mpa.KindRDMAC {
		o.Dialect = mpa.DialectRevision0
	}
	return o
}

// asked are the bits in the frame of an RNIC: M as in the heading, and C, as none here
// asks to do without CRCs.
func (r RNIC) asked() string { return wording.If(r.Markers, "MC", "C") }

// demanded is what a cell says, and what the text around the figures says of the frames.
func demanded(i, r RNIC, cell string) string {
	switch {
	case cell == notApplicable:
		return "up V=0 M=1/1 CRC=1 rev=0/0 asked=MC/MC"
	case cell == refuses && i.Kind == mpa.KindRDMAC:
		// 5.2.1: "it would send an MPA Reply Frame with the Rev field equal to one and
		// then gracefully close the connection."
		return fmt.Sprintf("close rev=0/1 asked=MC/%s named=yes closed=fin", r.asked())
	case cell == refuses:
		// 5.2.2: "will gracefully close the connection after it reads the incompatible
		// Rev field in the MPA Reply Frame."
		return fmt.Sprintf("close rev=1/0 asked=%s/MC named=yes closed=fin", i.asked())
	}
	request, reply := 1, 1
	if i.Kind == mpa.KindRDMAC {
		request, reply = 0, 0
	}
	if r.Kind == mpa.KindRDMAC {
		reply = 0
	}
	return fmt.Sprintf("up %s CRC=1 rev=%d/%d asked=%s/%s", cell, request, reply, i.asked(), r.asked())
}
