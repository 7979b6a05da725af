package matrix

import (
	"strings"

	"github.com/goiwarp/iwarp/mpa"
)

// A Row is two ends and what the documents demand of them.
type Row struct {
	Name string
	// Requirement is the document with the sections, and after it the requirements, each in brackets.
	Requirement string
	Initiator   Initiator
	Responder   Responder
	// ResponderFirst has the initiator's consumer wait for the responder's Send
	// before it does anything.
	ResponderFirst bool
	Demanded       string
}

// cited takes a Requirement apart: "RFC 6581 9.2 [E07] [E12]" is of section "RFC 6581 9.2".
func cited(requirement string) (section string, ids []string) {
	section, rest, _ := strings.Cut(requirement, " [")
	return section, strings.Split(strings.TrimSuffix(rest, "]"), "] [")
}

// listed is the row in a group.
func (r *Row) listed(group string) Listed {
	section, ids := cited(r.Requirement)
	return Listed{Group: group, Name: r.Name, Requirements: ids, Section: section, Demanded: text(r.demands())}
}

// A Group is rows of one kind.
type Group struct {
	Name string
	Rows []Row
}

// An Initiator is the end that asks for a connection.
type Initiator struct {
	// Network is what it connects over, one of internal/network's. If empty, TCP.
	Network    string
	Offer      mpa.Offer
	NoReads    bool
	NoFallback bool
	// Request is sent by hand, in place of the Request of a Dialer.
	Request *mpa.StartupFields
	// Say is sent by hand over SCTP, and Then when the session was accepted.
	Say, Then []Message
}

// byHand reports whether there is no Dialer.
func (i *Initiator) byHand() bool { return i.Request != nil || i.Say != nil }

// A Responder is the end that is asked.
type Responder struct {
	Kind     mpa.Kind // of its RNIC
	Dialects []mpa.Dialect
	Messages bool
	// Answer is its answer; the Markers and NoCRC of it also stand in the Reply with
	// which a non-permissive RNIC refuses revision 0.
	Answer  mpa.Answer
	NoReads bool
	// Reject, if it is set, is its answer instead.
	Reject *Rejection
	// Replies are sent by hand, one on each connection, in place of the Reply of a
	// Listener; nil closes the connection.
	Replies []*mpa.StartupFields
	// Say are answers by hand over SCTP, those in each association in a list.
	Say [][]Message
}

// byHand reports whether there is no Listener.
func (r *Responder) byHand() bool { return r.Replies != nil || r.Say != nil }

// A Rejection is what the Reply of a rejecting responder has.
type Rejection struct {
	PrivateData []byte
	IRD, ORD    mpa.Depth
}

// privateData returns n bytes of private data; bytes out of place are noticed.
func privateData(n int) []byte { return pattern(n, 0x5a) }

// pattern returns n bytes that do not repeat from marker to marker.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*31+i/251) ^ seed
	}
	return b
}

// enhanced returns private data that is enhanced data.
func enhanced(e mpa.Enhanced) []byte { return mpa.AppendEnhanced(nil, &e) }

// A sharedRow is a row of RFC 6581 that runs over MPA and over SCTP.
type sharedRow struct {
	name, section string
	ids           string // of the requirements
	i             Initiator
	r             Responder
	demanded      string // over both; and in addition
	mpa, sctp     string // over each
}

// overMPA returns shared as rows.
func overMPA(shared []sharedRow) (rows []Row) {
	for _, c := range shared {
		rows = append(rows, Row{Name: c.name, Requirement: "RFC 6581 " + c.section + " " + c.ids, Initiator: c.i,
			Responder: c.r, Demanded: c.demanded + c.mpa})
	}
	return rows
}

// overSCTP returns shared as rows that have further requirements, with either side free to send first.
func overSCTP(ids string, shared []sharedRow) (rows []Row) {
	for _, c := range shared {
		rows = append(rows, Row{Name: c.name, Requirement: "RFC 6581 7, " + c.section + " " + ids + c.ids,
			Initiator: c.i, Responder: c.r, Demanded: c.demanded + c.sctp})
	}
	return rows
}
