package decode

import (
	"cmp"
	"slices"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/sctp"
)

// An association is an SCTP association, whether it carries DDP or not.
type association struct {
	d       *Decoder
	of      *capture.Association
	is      bool // it carries DDP
	streams map[uint16]*session
	used    map[uint16]bool // streams that have had a session
	begun   int             // sessions
	early   []earlyFinding  // from before the first session
	settled [2]uint32       // what was looked at
	doubts  int             // suspicions of all sessions
	lacks   [2]bool         // the end's INIT or INIT ACK has no indication of DDP
}

// An earlyFinding is one about an association that has no session yet.
type earlyFinding struct {
	kind         finding
	dir          capture.Dir
	packet       capture.Stamp
	text, advice string
}

// maxEarly bounds those.
const maxEarly = 16

// sctpSink has a Decoder be a [capture.AssociationSink].
type sctpSink struct{ d *Decoder }

var _ capture.AssociationSink = sctpSink{}

// AssociationOpened is part of [capture.AssociationSink].
func (s sctpSink) AssociationOpened(a *capture.Association) {
	s.d.totals.Associations++
	own := &association{d: s.d, of: a, streams: map[uint16]*session{}, used: map[uint16]bool{}}
	own.is = s.d.cfg.ExpectSCTP != nil && s.d.cfg.ExpectSCTP(a)
	a.State = own
}

func ofSCTP(a *capture.Association) *association { return a.State.(*association) }

// SetUp is part of [capture.AssociationSink]. It judges an INIT or INIT ACK.
func (s sctpSink) SetUp(a *capture.Association, d capture.Dir) {
	own, p := ofSCTP(a), &a.Ends[d].Setup
	ddp := p.HasAdaptation && p.Adaptation == sctp.AdaptationDDP
	own.is = own.is || ddp
	own.lacks[d] = !ddp && p.Whole
	if p.Out != p.In {
		// RFC 5043, section 8: "The adaptation MUST initialize all of its SCTP associations with the same number of
		// inbound and outbound streams."
		own.report(findStreams, d, p.Packet, streamsText(p),
			"a DDP stream is a pair of SCTP streams with one identifier: ask for as many in as out")
	}
	own.indications()
}

// Message is part of [capture.AssociationSink].
func (s sctpSink) Message(a *capture.Association, m *capture.Message) {
	own := ofSCTP(a)
	if isDDP := m.PPID == sctp.PPIDSegment || m.PPID == sctp.PPIDControl; !own.is && isDDP {
		own.is = true
		own.indications()
	}
	if !own.is {
		return
	}
	if x := own.session(m); x != nil {
		x.arrive(m)
	}
}

// Passed is part of [capture.AssociationSink]. It gives up messages that the receiver has
// had for long, and that are not in the capture.
func (s sctpSink) Passed(a *capture.Association) {
	own := ofSCTP(a)
	for d := range a.Ends {
		tsn, ok := a.Ends[d].Settled()
		if !ok || tsn == own.settled[d] {
			continue
		}
		own.settled[d] = tsn
		for _, x := range own.sessions() {
			x.giveUpThrough(capture.Dir(d), tsn)
		}
	}
	if own.doubts > 0 {
		for _, x := range own.sessions() {
			x.resolve(false)
		}
	}
}

// Finished is part of [capture.AssociationSink].
func (s sctpSink) Finished(a *capture.Association, f capture.Finish) {
	own := ofSCTP(a)
	if own.is && own.begun == 0 && (f.Reason != capture.EndCapture || len(own.early) > 0) {
		own.without(f)
	}
	for _, x := range own.sessions() {
		x.finish(f)
	}
	a.State = &association{d: s.d, of: a} // it takes nothing more
}

// sessions returns those that are open, by stream.
func (a *association) sessions() []*session {
	all := make([]*session, 0, len(a.streams))
	for _, x := range a.streams {
		all = append(all, x)
	}
	slices.SortFunc(all, func(x, y *session) int { return cmp.Compare(x.id, y.id) })
	return all
}

// indications judges the Adaptation Layer Indications of an association that carries DDP.
//
// RFC 5043, section 11.1: "a DDP/SCTP adaptation layer MUST include an adaptation layer
// indication in its INIT or INIT-ACK".
func (a *association) indications() {
	for d, lacks := range a.lacks {
		if !lacks || !a.is {
			continue
		}
		a.lacks[d] = false
		p := &a.of.Ends[d].Setup
		a.report(findIndication, capture.Dir(d), p.Packet, indicationText(p),
			"its peer has to refuse or end the association: the listener must be one of DDP, and its SCTP must support RFC 5061")
	}
}

// report tells of a finding about the association, at its first session.
func (a *association) report(k finding, d capture.Dir, p capture.Stamp, text, advice string) {
	if a.begun > 0 {
		for _, x := range a.sessions() {
			x.c.report(k, d, x.sides[d].offset, p, text, advice)
			return
		}
	}
	if len(a.early) < maxEarly {
		a.early = append(a.early, earlyFinding{k, d, p, text, advice})
	}
}

// without tells of an association that has ended without a session.
func (a *association) without(f capture.Finish) {
	a.startSession(Session{SCTP: a.of, None: true}, a.of.First).finish(f)
}
