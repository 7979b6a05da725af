package probe

import (
	"slices"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A Report is what was asked, and what follows from the answers.
type Report struct {
	report.Stamp

	Peer    string `json:"peer"`
	Network string `json:"network"` // as in Config
	// Incomplete: the peer was gone before the last question, or the time was over. What is missing in the
	// report was not asked.
	Incomplete bool `json:"incomplete,omitempty"`
	// Stopped is where the peer stopped answering, if it did. Nothing is concluded from that it did.
	Stopped *Stop `json:"stopped,omitempty"`
	// Away are the times at which it did not answer for a while, and then did.
	Away []Absence `json:"away,omitempty"`
	// OutOfTime: Config.Limit was over before it.
	OutOfTime bool `json:"out_of_time,omitempty"`
	// Interrupted: the context ended before it.
	Interrupted bool `json:"interrupted,omitempty"`
	// NotAsked are the questions that a peer was spared that has answered nothing for
	// Config.GiveUp, or has stopped answering, and those for which there was no more time.
	NotAsked []string `json:"not_asked,omitempty"`

	// NotMPA: the peer answers, but never in frames of MPA.
	NotMPA bool `json:"not_mpa,omitempty"`
	// Echo: what it answers are our own bytes.
	Echo bool `json:"echo,omitempty"`

	// Dialects are those that the peer speaks as a responder.
	Dialects []mpa.Dialect `json:"dialects"`
	// Kind is the kind of RNIC that answers revision 0 and 1 as the peer does, and
	// KindReason says why.
	Kind       mpa.Kind `json:"kind,omitzero"`
	KindReason string   `json:"kind_reason"`

	// Markers and CRC say in words what the peer does about them.
	Markers string `json:"markers"`
	CRC     string `json:"crc"`

	Revisions   Revisions     `json:"revisions"`
	RTR         []RTRAnswer   `json:"rtr,omitempty"`
	Depths      []DepthAnswer `json:"depths,omitempty"`
	Limits      *Limits       `json:"limits,omitempty"`
	Bits        Bits          `json:"bits"`
	PrivateData PrivateData   `json:"private_data"`
	FirstFPDUs  FirstFPDUs    `json:"first_fpdus"`
	// InTwo is a Request in two segments, and Glued an FPDU in one segment with it.
	InTwo *Question `json:"in_two,omitempty"`
	Glued *Question `json:"glued,omitempty"`
	// Extensions is what the peer knows of RFC 7306, if Config.Extensions asks for it.
	Extensions Extensions `json:"extensions,omitempty"`
	// NoRequest is a connection on which nothing is sent, if Config.Slow asks for it.
	NoRequest *Question `json:"no_request,omitempty"`

	// EchoesReserved: the Reply repeats the reserved bits of the Request.
	EchoesReserved bool `json:"echoes_reserved"`
	// Resembles are the known implementations, the most similar first; none if the peer
	// answered no Request. Preset
	// is the name of the preset to use with the first one. It is empty if none is
	// similar enough.
	Resembles []Match `json:"resembles"`
	Preset    string  `json:"preset,omitempty"`

	// Questions are all that was asked, in order.
	Questions []*Question `json:"questions"`
}

// Revisions are the answers by revision and dialect.
type Revisions struct {
	Zero            *Question `json:"0,omitempty"`
	One             *Question `json:"1,omitempty"`
	OneSMBDirect    *Question `json:"1_smb_direct,omitempty"` // if the plain one is not answered
	TwoPeerToPeer   *Question `json:"2_peer_to_peer,omitempty"`
	TwoClientServer *Question `json:"2_client_server,omitempty"`
	TwoPlain        *Question `json:"2_without_s,omitempty"`
	ThreeEnhanced   *Question `json:"3,omitempty"`
	ThreePlain      *Question `json:"3_without_s,omitempty"`
	RtrFrame        *Question `json:"1_with_s,omitempty"`
	StartKey        *Question `json:"start_key,omitempty"`
}

// Bits are the answers to a Request that differs in some bits.
type Bits struct {
	Markers  *Question `json:"markers,omitempty"`
	NoCRC    *Question `json:"no_crc,omitempty"`
	Reserved *Question `json:"reserved,omitempty"`
	R        *Question `json:"r,omitempty"`
}

// RTRAnswer is the answer to a peer-to-peer request with some kinds of RTR.
type RTRAnswer struct {
	Offered  string  `json:"offered"`
	Outcome  Outcome `json:"outcome"`
	FlagA    bool    `json:"flag_a"`
	Answered string  `json:"answered,omitempty"`
}

// kindsAnswer is the answer to kinds of RTR, with the enhanced data of that, or nil.
func kindsAnswer(offered mpa.RTR, outcome Outcome, e *mpa.Enhanced) RTRAnswer {
	a := RTRAnswer{Offered: offered.String(), Outcome: outcome}
	if e != nil {
		a.FlagA, a.Answered = e.A, e.RTR().String()
	}
	return a
}

// DepthAnswer is the answer to a request with the same IRD and ORD. It has Depths if the
// answer had them.
type DepthAnswer struct {
	Asked   mpa.Depth `json:"asked"`
	Outcome Outcome   `json:"outcome"`
	*Depths
}

// Depths are as they were sent: 16383 is 0x3FFF, no negotiation.
type Depths struct {
	IRD mpa.Depth `json:"ird"`
	ORD mpa.Depth `json:"ord"`
}

// PrivateData is how much private data of the ULP the peer takes, in bytes, in the
// dialect that was used. Allowed is what the document of the dialect allows, and Over
// is what becomes of a Request with one byte more than Most.
type PrivateData struct {
	Most    int     `json:"most"`
	Allowed int     `json:"allowed"`
	Over    Outcome `json:"over,omitempty"`
}

// FirstFPDUs are the answers to a zero-length Read as the first FPDU.
type FirstFPDUs struct {
	Plain   *FPDUAnswer `json:"plain,omitempty"`
	Markers *FPDUAnswer `json:"markers,omitempty"`
}

// conclude draws the conclusions.
func (p *prober) conclude() {
	r := p.report
	r.NotMPA, r.Echo = r.notMPA()
	if q := r.Bits.Reserved; q.replied() {
		r.EchoesReserved = q.reply.Res() != 0
	}
	if r.Dialects = r.dialects(); len(r.Dialects) == 0 {
		// What a server does that answers nothing tells nothing of an RNIC.
		r.KindReason, r.Markers, r.CRC, r.Resembles = wording.If(r.Interrupted, "it was not asked enough",
			"it answers no Request"), "not known", "not known", []Match{}
		return
	}
	r.Kind, r.KindReason = r.kind()
	r.Markers, r.CRC, r.Limits = r.markers(), r.crc(), r.limits()
	if r.Resembles = []Match{}; !r.Incomplete { // else too little is known
		r.Resembles = resemblance(r.features())
	}
	if r.recognized() {
		r.Preset = r.Resembles[0].Preset
	}
}

// recognized reports whether the peer is like the most similar implementation.
func (r *Report) recognized() bool { return len(r.Resembles) > 0 && r.Resembles[0].near() }

// notMPA reports whether there were answers, and none of them in frames of MPA; echo, whether they are what we had
// sent. A Start Key may be the same as ours, and the Request of an Initiator once: but not all frames.
func (r *Report) notMPA() (not, echo bool) {
	other, own := false, false
	for _, q := range r.Questions {
		switch {
		case q.replied(), q.start != nil && !q.echo:
			return false, false
		case q.echo:
			echo = true
		case q.other:
			other = true
		case q.Outcome == Foreign, q.Outcome == Incomplete:
			own = true // a frame of the peer's
		}
	}
	echo = echo && !own && !other && len(r.Questions) > 1 && !r.onlyKeys()
	return other || echo, echo
}

// Part says how much of a frame the peer has sent, and shows it, where it has answered nothing whole; else it is empty.
func (r *Report) Part() (part string) {
	for _, q := range r.Questions {
		switch {
		case q.replied() || q.start != nil:
			return ""
		case q.Outcome == Incomplete && part == "":
			part = q.Answer
		}
	}
	return part
}

// onlyKeys reports whether nothing but a Start Key was answered.
func (r *Report) onlyKeys() bool {
	return !slices.ContainsFunc(r.Questions, func(q *Question) bool { return q.echo && q.start == nil })
}

func (r *Report) dialects() []mpa.Dialect {
	v, spoken := &r.Revisions, []mpa.Dialect{} // a list in JSON, too, if it is empty
	for _, d := range []struct {
		dialect mpa.Dialect
		spoken  bool
	}{
		{mpa.DialectRFC6581, isEnhanced(v.TwoPeerToPeer) || isEnhanced(v.TwoClientServer)},
		{mpa.DialectRFC5044, speaksOne(v.One) || speaksOne(v.OneSMBDirect)},
		// A peer that repeats reserved bits shows nothing by S=1.
		{mpa.DialectRtr, v.RtrFrame.replied() && v.RtrFrame.reply.S() && !r.EchoesReserved},
		{mpa.DialectRevision0, isRDMAC(v.Zero)},
		{mpa.DialectStartKey, v.StartKey != nil && v.StartKey.start != nil && !r.Echo},
	} {
		if d.spoken {
			spoken = append(spoken, d.dialect)
		}
	}
	return spoken
}

// markers says whether the peer asks for markers, and sends them if it is asked.
func (r *Report) markers() string {
	asks := "asks for none"
	if q := r.usual(); q.replied() && q.reply.M() {
		asks = "asks for them"
	}
	switch q, a := r.Bits.Markers, r.FirstFPDUs.Markers; {
	case q == nil:
		return asks
	case q.Outcome == Rejected && r.rejects():
		return asks + "; not known whether it sends them, as it rejects all Requests"
	case q.Outcome == Rejected:
		return asks + ", rejects a Request that does (M=1)"
	case q.Outcome.Refused():
		return asks + ", ends the connection on a Request that does (M=1)"
	case a != nil && a.Outcome == Response:
		return asks + ", sends them if asked"
	case a != nil:
		return asks + ", agrees to send them; asked for an FPDU: " + a.Outcome.String()
	}
	return asks + ", agrees to send them"
}

// crc says whether the peer insists on CRCs.
func (r *Report) crc() string {
	q := r.Bits.NoCRC
	switch {
	case q == nil:
		return "not known"
	case q.Outcome.Refused():
		return "ends the connection on a Request that wants none (C=0)"
	case !q.replied():
		return "not known"
	case q.Outcome == Rejected && r.rejects():
		return "not known, as it rejects all Requests"
	case q.Outcome == Rejected:
		return "rejects a Request that wants none (C=0)"
	case q.reply.C():
		return "wants them (C=1) even if the Request does not"
	}
	return "does without if the Request wants none (C=0)"
}

// usual is the answer to the most usual Request that was answered.
func (r *Report) usual() *Question {
	v := &r.Revisions
	for _, q := range []*Question{v.TwoPeerToPeer, v.TwoClientServer, v.One, v.OneSMBDirect} {
		if q.replied() {
			return q
		}
	}
	return nil
}

// rejects reports whether even the most usual Request is rejected, so that the rejection of
// another one says nothing about what is in that.
func (r *Report) rejects() bool {
	q := r.usual()
	return q.replied() && q.Outcome == Rejected
}

func speaksOne(q *Question) bool { return q.replied() && q.reply.Rev() == 1 }

// isRDMAC reports whether revision 0 was accepted as RDMAC RNICs accept it: with
// markers and CRCs in both directions. [N01]
func isRDMAC(q *Question) bool {
	return q.replied() && q.Outcome == Accepted && q.reply.Rev() == 0 && q.reply.M() && q.reply.C()
}

func isEnhanced(q *Question) bool {
	_, ok := q.enhanced()
	return ok
}

// kind tells the kind of RNIC by its answers to revision 0 and 1: CARRIER, section
// 5. [N03] [N04]
func (r *Report) kind() (mpa.Kind, string) {
	zero, one := r.Revisions.Zero, r.Revisions.One
	switch {
	case zero == nil && one == nil:
		return 0, "it was not asked enough"
	case one.replied() && one.reply.Rev() == 0:
		return mpa.KindRDMAC, "it answers revision 1 with revision 0"
	case isRDMAC(zero):
		return mpa.KindPermissive, "it answers revision 0 with revision 0, markers and CRCs"
	case zero.replied() && zero.reply.Rev() != 0:
		return mpa.KindNonPermissive, "it answers revision 0 with another revision"
	case zero != nil && zero.Outcome == Rejected && r.rejects():
		return 0, "it rejects all Requests"
	case zero != nil && zero.Outcome == Rejected:
		return mpa.KindNonPermissive, "it rejects revision 0 with markers"
	case zero != nil && zero.Outcome.Refused():
		return mpa.KindNonPermissive, "it closes the connection on revision 0"
	case zero == nil:
		return 0, "it was not asked in revision 0"
	case zero.replied():
		return mpa.KindNonPermissive, "it takes revision 0, but not with markers and CRCs in both directions"
	}
	return 0, "its answer to revision 0 says nothing"
}
