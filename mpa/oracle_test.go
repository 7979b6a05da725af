package mpa_test

import (
	"slices"

	"github.com/goiwarp/iwarp/mpa"
)

// scenario is what two ends want of a connection.
type scenario struct {
	offer    mpa.Offer
	cfg      mpa.ResponderConfig
	answer   mpa.Answer
	decision decision
	insist   mpa.Depth // see virtual
}

// want is what the documents say comes of a scenario.
type want struct {
	up      bool
	dialect mpa.Dialect
	// rejected: the Initiator is told so, by R=1 or by a close after a message.
	rejected bool
	// initiator and responder are the failures that there may be at the two ends.
	initiator, responder []mpa.Failure
	// hang: without timeouts, somebody may wait for ever.
	hang bool
}

// wire is what can be told of a first frame from its bytes.
type wire struct {
	form string // "frame", "key" or "message"
	rev  uint8
	s    bool
}

// firstFrames are the first frames of the dialects: 5044 7.1.1, 6581 6, the 2007
// proposal, CARRIER 5.2.1, CULLEY 8.1.1.
var firstFrames = map[mpa.Dialect]wire{
	mpa.DialectRFC5044:   {form: "frame", rev: 1},
	mpa.DialectRFC6581:   {form: "frame", rev: 2, s: true},
	mpa.DialectRtr:       {form: "frame", rev: 1, s: true},
	mpa.DialectRevision0: {form: "frame", rev: 0},
	mpa.DialectStartKey:  {form: "key"},
}

// versionOf is the DDP and RDMAP version of a dialect: CARRIER figure 1.
var versionOf = map[mpa.Dialect]uint8{
	mpa.DialectRFC5044: 1, mpa.DialectRFC6581: 1, mpa.DialectRtr: 1, mpa.DialectRevision0: 0, mpa.DialectStartKey: 0,
}

// can says whether a kind of RNIC has a version: CARRIER figure 1.
func can(k mpa.Kind, version uint8) bool {
	return k == rdmac && version == 0 || k == nonperm && version == 1 || k == perm || k == 0
}

// dialect is that of the Request: 6581 10 demands an unenhanced one "when no
// enhanced functionality is desired".
func (s *scenario) dialect() mpa.Dialect {
	o := &s.offer
	switch {
	case o.Dialect == 0 && o.Kind == rdmac:
		return mpa.DialectRevision0
	case o.Dialect != 0 && o.Dialect != mpa.DialectRFC6581:
		return o.Dialect
	case o.ClientServer && o.IRD == 0x3fff && o.ORD == 0x3fff:
		return mpa.DialectRFC5044
	}
	return mpa.DialectRFC6581
}

// room is what of private data has a place.
func room(d mpa.Dialect, message bool) int {
	switch {
	case d == mpa.DialectRFC6581:
		return 508
	case d == mpa.DialectStartKey && !message:
		return 0
	}
	return 512
}

// legal reports whether an Initiator can be made of the offer.
func (s *scenario) legal() bool {
	d := s.dialect()
	return can(s.offer.Kind, versionOf[d]) && len(s.offer.PrivateData) <= room(d, s.offer.Messages)
}

func (s *scenario) message() bool { return s.dialect() == mpa.DialectStartKey && s.offer.Messages }

// serves reports whether the responder looks for a dialect.
func (s *scenario) serves(d mpa.Dialect) bool {
	if !can(s.cfg.Kind, versionOf[d]) {
		return false
	}
	if len(s.cfg.Dialects) == 0 {
		return d != mpa.DialectRtr
	}
	return slices.Contains(s.cfg.Dialects, d)
}

// served is the dialect in which a responder serves the first frame, or 0.
func (s *scenario) served() mpa.Dialect {
	w := firstFrames[s.dialect()]
	try := []mpa.Dialect{s.dialect()}
	switch {
	case w.form == "frame" && s.cfg.Kind == rdmac:
		try = []mpa.Dialect{mpa.DialectRevision0} // CARRIER 5.2.2: whatever the Request's revision
	case w.rev == 1 && w.s:
		try = []mpa.Dialect{mpa.DialectRtr, mpa.DialectRFC5044}
	}
	for _, d := range try {
		if s.serves(d) {
			return d
		}
	}
	return 0
}

// unservedReply reports whether the Initiator does not serve the revision of a rejection (RFC 5044, section 7.1.1).
func (s *scenario) unservedReply() bool {
	return s.served() == mpa.DialectRevision0 && s.dialect() != mpa.DialectRevision0 && s.offer.Kind == nonperm
}

// answered is the dialect of an accepting answer, or 0 if there can be none.
func (s *scenario) answered() mpa.Dialect {
	d, kind := s.served(), s.answer.Kind
	if kind == 0 {
		kind = s.cfg.Kind
	}
	if kind == rdmac && d != mpa.DialectStartKey {
		d = mpa.DialectRevision0
	}
	if !can(kind, versionOf[d]) || !can(s.cfg.Kind, versionOf[d]) || len(s.answer.PrivateData) > room(d, s.message()) {
		return 0
	}
	return d
}

type failures = []mpa.Failure

var (
	closed  = failures{mpa.FailureClosed}
	timeout = failures{mpa.FailureTimeout}
)

// outcome tells what comes of a scenario if no time passes needlessly.
func (s *scenario) outcome() want {
	d := s.served()
	switch {
	case s.message() && !(s.cfg.Messages && s.serves(mpa.DialectStartKey)):
		// A key is 16 bytes, and the message may be shorter.
		return want{
			initiator: failures{mpa.FailureTimeout, mpa.FailureClosed},
			responder: failures{mpa.FailureTimeout, mpa.FailureClosed, mpa.FailureKey},
			hang:      s.offer.Timeout < 0 && s.cfg.Timeout < 0,
		}
	case d == 0:
		return s.refused()
	case s.decision == ignores:
		return want{initiator: timeout, responder: closed, hang: s.offer.Timeout < 0}
	case s.decision == rejects || s.answered() == 0:
		// CULLEY 13.3.1: without a message to say so, closing is all there is.
		if s.dialect() == mpa.DialectStartKey && !s.message() {
			return want{initiator: closed}
		}
		return want{rejected: true}
	}
	return s.accepted(s.answered())
}

// refused is a first frame that is not served: CARRIER 5.2.1 and 5044 7.1.1.
func (s *scenario) refused() want {
	w := firstFrames[s.dialect()]
	switch {
	case w.form == "key":
		return want{initiator: closed, responder: failures{mpa.FailureDialect}}
	case w.rev == 0 && can(s.cfg.Kind, 1):
		return want{initiator: failures{mpa.FailureRevision}, responder: failures{mpa.FailureRevision}}
	}
	return want{initiator: closed, responder: failures{mpa.FailureRevision}}
}

// accepted is what an Initiator makes of an accepting answer: CARRIER 5.2.2 and
// 5.3.2, 6581 10.
func (s *scenario) accepted(d mpa.Dialect) want {
	switch ours := s.dialect(); {
	case d != mpa.DialectRevision0 || ours == mpa.DialectRevision0:
		return want{up: true, dialect: d}
	case !can(s.offer.Kind, 0):
		return want{initiator: failures{mpa.FailureRevision}, responder: closed}
	case ours == mpa.DialectRFC6581:
		return want{initiator: failures{mpa.FailureMismatch}, responder: closed}
	}
	return want{up: true, dialect: d}
}

// depth is 6581 9.1 for one direction of RDMA Reads, as the side that answers them
// and the side that sends them have to come out of it: what both wanted, what the
// Reply said, and what is in effect.
type depth struct {
	ird, ord         mpa.Depth // wanted
	sent             mpa.Depth // by the responder
	effIRD, effORD   mpa.Depth
	most             mpa.Depth // the IRD may grow to this
	responderAnswers bool      // the responder's IRD, and the initiator's ORD
}

const ulp = 0x3fff // "the ULP will be responsible for it"

// holds reports which rule is broken, or none.
func (d *depth) holds() string {
	most := min(max(d.ird, d.most), ulp)
	if d.responderAnswers {
		switch {
		case d.ord == ulp && (d.sent != ulp || d.effIRD != d.ird):
			return "initiator ORD of 0x3FFF: the responder leaves its IRD unchanged and answers 0x3FFF"
		case d.sent == ulp && d.effORD != d.ord:
			return "responder IRD of 0x3FFF: the initiator leaves its ORD unchanged"
		case d.ord != ulp && d.sent != d.effIRD:
			return "the responder says the IRD that it has"
		case d.effIRD < d.ird || d.effIRD > max(most, 1):
			return "the responder's IRD grows, within its bound"
		case d.sent != ulp && d.effORD != min(d.ord, d.sent):
			return "the initiator sets its ORD at most to the responder's IRD, and no lower"
		}
		return ""
	}
	switch {
	case d.ird == ulp && d.sent != ulp:
		return "initiator IRD of 0x3FFF: the responder answers ORD 0x3FFF"
	case d.ird == ulp && d.effORD != d.ord:
		return "initiator IRD of 0x3FFF: the responder leaves its ORD unchanged"
	case d.sent == ulp && d.effIRD != d.ird:
		return "responder ORD of 0x3FFF: the initiator leaves its IRD unchanged"
	case d.ird != ulp && d.ord != ulp && d.effORD != min(d.ord, d.ird):
		return "the responder sets its ORD at most to the initiator's IRD, and no lower"
	case d.sent != ulp && d.sent <= most && d.effIRD != max(d.ird, d.sent):
		return "the initiator sets its IRD at least to the responder's ORD, and no higher"
	case d.effIRD > most:
		return "the initiator's IRD grows, within its bound"
	}
	return ""
}
