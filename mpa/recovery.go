package mpa

// Sizes of a [Recovery], in octets and in pieces.
const (
	// DefaultRecoveryBuffer is the bound on held octets where none is given.
	DefaultRecoveryBuffer = 1 << 20
	// MinRecoveryBuffer is the least bound there is. RFC 5044, Appendix A.5.2: "If
	// the MTU is smaller than 140 octets, a buffer of at least 140 octets long is
	// needed to support the minimum FPDU size." [R07]
	MinRecoveryBuffer = 140
	// maxSpans bounds the pieces of the stream that a Recovery keeps apart.
	maxSpans = 1024
	// maxOffset is where stream offsets end.
	maxOffset = 1 << 63
)

// RecoveryConfig says what a [Recovery] knows of its half connection and how it is
// to go about it. The zero value is a receiver without markers and CRC.
type RecoveryConfig struct {
	// Markers tells that the half connection has markers, CRC that its CRCs are
	// generated and so are checked. [F11] [F14]
	Markers, CRC bool
	// Buffer bounds the octets held, which are those that arrived and are not yet
	// handed over; 0 means [DefaultRecoveryBuffer]. One segment may come on top
	// while it is looked at. It is to hold the largest FPDU that may come split
	// over segments, at most [MaxFPDU]: one that it cannot hold is not found. To
	// search for one behind lost octets takes twice its size. [R07]
	Buffer int
	// MidStream tells that the stream began earlier. Offsets count from any origin
	// then, what lies below the first segment is ignored, and boundaries of FPDUs
	// and the places of markers have to be found: see [Resync].
	MidStream bool
	// Guess, with MidStream, tells that Markers and CRC are not known either. It
	// waits until enough has come to tell that there are no markers: see [Resync].
	Guess bool
	// Resync makes it go on after an error, and give up the first missing octets
	// where the Buffer is full, as an analyser wants it. A receiver does not: RFC
	// 5044, Section 8: "Once MPA delivers an error of any type, it MUST NOT pass or
	// deliver any additional FPDUs on that half connection."
	Resync bool
	// Plausible, if not nil, tells whether a ULPDU may be one, by its first 64
	// octets or as much as there is. It is asked where neither CRC nor markers can
	// tell, and is not to keep the slice.
	Plausible func(ulpdu []byte) bool
}

// Recovery finds the FPDUs of one direction of a connection in segments that come
// in any order, overlapping, repeated or not at all: the receiver of an MPA-aware
// TCP, or of a capture file. It is not safe for concurrent use.
//
// A segment is given to [Recovery.Segment], and what it brought about is taken with
// [Recovery.Next] until there is no more. A ULPDU is reported as soon as it is whole
// and valid ([EventPlaced], Placement), once; every report tells up to where the
// stream is complete ([Recovered.Delivered], Delivery). [R05] [R06]
//
// # What is recoverable
//
// An FPDU is found as soon as all its octets are there and its start is known. The
// start is known, by RFC 5044, Section 6, if
//
//   - all octets before it are there (rule 1), or
//   - with markers, a marker stands in it (rule 2), or
//   - the FPDU in front of it was found (rule 3).
//
// With CRC it must have a valid CRC, with markers all of those in it must point to it.
// There is no other way while missing octets may still come. When octets are given
// up, by [Recovery.SkipTo] or, with Resync, for lack of room, the start is known too
//
//   - with CRC, of every FPDU behind them: it is searched for with its CRC;
//   - behind an FPDU whose start is known and of which at least ULPDU_Length is there
//     in one piece with all before it ([EventCut]);
//   - with neither CRC nor markers, of the first of 4 FPDUs in a row that are
//     plausible, or without [RecoveryConfig.Plausible] of the fifth of 20 in a row.
//     Payload can look like that; see [Sync.Confidence].
//
// The same holds behind an FPDU in error, with Resync. Errors are judged in the
// order of the stream only, so that it does not matter in which order segments come;
// what was found behind an error is placed by then, but a receiver never delivers it.
// A length in order that reaches into an FPDU found by its marker is an error as soon
// as the gap between them is closed.
//
// # Cost
//
// Octets in order are not copied, but for FPDUs that are split over segments or
// have a marker within; others once, or a few times where segments come backwards.
// Nothing is allocated per FPDU in order. Each marker is looked at and each start
// judged a bounded number of times, and a search takes the same time for any
// ULPDU_Length, so that the time is linear in the octets given, whatever they are.
type Recovery struct {
	cfg   RecoveryConfig
	known bool   // phase, Markers and CRC are known
	shift uint64 // added to offsets so that markers are at multiples of 512
	begun bool   // MidStream: the first segment was given

	next   uint64 // everything before is delivered, or given up
	synced bool   // an FPDU begins at next
	run    octets // synced: what is held from next on
	in     []byte // synced: octets of the caller's segment right behind run
	fresh  bool   // run or in may hold an FPDU that was not looked at
	doubt  bool   // next comes from a ULPDU_Length that was not verified
	how    Location

	spans []span // what is known behind, in order, disjoint
	dirty int    // spans before this one need not be looked at
	floor uint64 // what is missing before will never come

	segment struct { // what was not yet looked at
		offset uint64
		b      []byte
	}
	seeking seeking
	sums    crcSums
	kept    []candidate // of the span that run was, noted
	noted   [2]uint64   // from where to where
	stopped bool

	queue   []Recovered
	marks   []MarkerSeen // of the FPDU reported last
	scratch []byte       // its ULPDU, where markers stood in it
	spare   []byte       // a buffer to use again

	stats RecoveryStats
}

// RecoveryStats counts octets of one half connection.
type RecoveryStats struct {
	Held     int    // held now, after the last segment was worked off
	MostHeld int    // the most ever held so: the reassembly buffer that was needed
	Repeated uint64 // came again, or too late
	Dropped  uint64 // forgotten for lack of room
	Lost     uint64 // given up
}

// NewRecovery returns a Recovery at the beginning of Full Operation, where offset 0
// is, or with MidStream anywhere.
func NewRecovery(cfg RecoveryConfig) *Recovery {
	if cfg.Buffer == 0 {
		cfg.Buffer = DefaultRecoveryBuffer
	}
	cfg.Buffer = max(cfg.Buffer, MinRecoveryBuffer)
	whole := !cfg.MidStream
	return &Recovery{cfg: cfg, known: whole, begun: whole, synced: whole, how: LocatedInOrder}
}

// Segment gives the octets of one TCP segment, which begin at a stream offset: 0 is
// the first octet of Full Operation. Octets that were there before are ignored, and
// do not replace those; so are octets from 1<<63 on. b is kept until [Recovery.Next]
// has nothing more to report, and is not changed.
//
// It panics if Next was not called until then since the segment before.
func (r *Recovery) Segment(offset uint64, b []byte) {
	if len(r.segment.b) > 0 || len(r.in) > 0 || r.head() {
		panic("mpa: Recovery.Segment called before Next had reported everything")
	}
	if offset >= maxOffset-uint64(len(b)) {
		b = nil
	}
	if !r.begun && len(b) > 0 {
		r.begun, r.next = true, offset
	}
	r.segment.offset, r.segment.b = offset, b
}

// SkipTo tells that octets below a stream offset which are missing will never come:
// they are not in the capture. What that brings about is then taken with
// [Recovery.Next]. At the end of a capture, SkipTo(math.MaxUint64) brings out what
// is left.
func (r *Recovery) SkipTo(offset uint64) { r.floor = max(r.floor, offset) }

// Next returns the next event; ok is false if there is none until more octets come
// or are given up. What an event refers to is valid until the next call of any
// method.
func (r *Recovery) Next() (ev Recovered, ok bool) {
	for !r.head() {
		if !r.step() {
			return Recovered{}, false
		}
	}
	ev = r.queue[0]
	r.queue = r.queue[:copy(r.queue, r.queue[1:])]
	return ev, true
}

func (r *Recovery) head() bool { return len(r.queue) > 0 }

// step does one thing that makes progress, and reports whether there was one to do.
func (r *Recovery) step() bool {
	switch {
	case r.stopped:
		r.segment.b, r.in = nil, nil
		return false
	case r.synced && r.inOrder():
	case r.dirty < len(r.spans) && r.outOfOrder():
	case !r.synced && r.seek():
	case r.piece():
	case r.giveUp():
	case r.enforce():
	default:
		if r.synced {
			r.sums.release()
		}
		r.stats.Held = r.held()
		r.stats.MostHeld = max(r.stats.MostHeld, r.stats.Held)
		return false
	}
	return true
}

// Delivered returns the stream offset up to which everything was handed over, or
// given up.
func (r *Recovery) Delivered() uint64 { return r.next }

// Missing returns the first octets that are missing in front of others that have
// come; ok is false if none are.
func (r *Recovery) Missing() (from, to uint64, ok bool) {
	from = r.edge()
	for i := range r.spans {
		if from < r.spans[i].start {
			return from, r.spans[i].start, true
		}
		from = r.spans[i].end
	}
	return 0, 0, false
}

// Stats returns the counts so far.
func (r *Recovery) Stats() RecoveryStats { return r.stats }

// Synced reports whether it is known where the next FPDU in order begins.
func (r *Recovery) Synced() bool { return r.synced }

// Mode returns whether there are markers and CRCs, as given or as found. ok is false
// while that, or where the markers are, is still to be found.
func (r *Recovery) Mode() (markers, crc, ok bool) { return r.cfg.Markers, r.cfg.CRC, r.known }

// edge returns the offset of the first octet in order that is not there.
func (r *Recovery) edge() uint64 { return r.next + uint64(r.run.len()+len(r.in)) }

// held returns the octets held.
func (r *Recovery) held() int {
	n := r.run.len()
	for i := range r.spans {
		n += r.spans[i].len()
	}
	return n
}
