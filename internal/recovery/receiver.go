package recovery

// Sizes of a [Receiver], in bytes and in pieces.
const (
	// DefaultBuffer is the bound on held bytes where none is given.
	DefaultBuffer = 1 << 20
	// MinBuffer is the least bound there is. RFC 5044, Appendix A.5.2: "If
	// the MTU is smaller than 140 bytes, a buffer of at least 140 bytes long is
	// needed to support the minimum FPDU size."
	MinBuffer = 140
	// maxSpans bounds the pieces of the stream that a Receiver keeps apart.
	maxSpans = 1024
	// maxOffset is where stream offsets end.
	maxOffset = 1 << 63
)

// Config says what a [Receiver] knows of its half connection, and what it does about
// losses and errors. The zero value suits a stream without markers and CRC.
type Config struct {
	// Markers tells that the half connection has markers, CRC that its CRCs are
	// generated and so are checked.
	Markers, CRC bool
	// Buffer bounds the bytes held, which are those that arrived and are not yet
	// handed over; 0 means [DefaultBuffer]. One segment more may be held while the
	// Receiver looks at it. Buffer must be as large as the largest FPDU that may be split
	// over segments, at most [layout.MaxFPDU]: a larger FPDU is not found. A search after
	// lost bytes needs twice the size of the FPDU.
	Buffer int
	// Start is the stream offset at which the first FPDU begins that the Receiver looks for:
	// all before it was received in another way, and is ignored. Unused with MidStream.
	Start uint64
	// MidStream tells that the stream began earlier. Offsets count from any origin
	// then, what lies below the first segment is ignored, and boundaries of FPDUs
	// and the places of markers have to be found: see [Resync].
	MidStream bool
	// Guess, with MidStream, tells that Markers and CRC are not known either. The
	// Receiver waits until enough bytes have come to tell that there are no markers: see
	// [Resync].
	Guess bool
	// Resync makes the Receiver go on after an error, and give up the first missing
	// bytes when the Buffer is full, as an analyzer wants it. An endpoint does not: RFC
	// 5044, section 8: "Once MPA delivers an error of any type, it MUST NOT pass or
	// deliver any additional FPDUs on that half connection."
	Resync bool
	// Plausible, if not nil, tells whether a ULPDU may be one, by its first 64
	// bytes or as much as there is. It is asked where neither CRC nor markers can
	// tell, and must not keep the slice.
	Plausible func(ulpdu []byte) bool
	// End, if not nil, is asked with Resync how many bytes a [Doubtful] FPDU takes. The next FPDU
	// begins after them. One whose pad has another size is Placed with that end if there are no
	// CRCs. With CRCs it has Failed, and so has one whose size is right. ok is false if the size
	// is not known: then it is how many bytes must be there to tell, or 0.
	End func(d Doubtful) (size int, ok bool)
}

// Receiver finds the FPDUs of one direction of a connection in segments that come
// in any order, overlapping, repeated or not at all: the receiver of an MPA-aware
// TCP, or of a capture file. It is not safe for concurrent use.
//
// Give each segment to [Receiver.Segment], and then call [Receiver.Next] until it has no
// more events. A ULPDU is reported as soon as it is whole
// and valid ([Placed], Placement), once; every report tells up to where the
// stream is complete ([Event.Delivered], Delivery).
//
// # What is recoverable
//
// An FPDU is found as soon as all its bytes are there and its start is known. The
// start is known, by RFC 5044, section 6, if
//
//   - all bytes before it are there (rule 1), or
//   - with markers, a marker stands in it (rule 2), or
//   - the FPDU in front of it was found (rule 3).
//
// With CRC it must have a valid CRC, with markers all of those in it must point to it.
// There is no other way while missing bytes may still come. When bytes are given
// up, by [Receiver.SkipTo] or, with Resync, for lack of room, the start is known too
//
//   - with CRC, of every FPDU after them: it is searched for with its CRC;
//   - after an FPDU whose start is known and of which at least ULPDU_Length is there
//     in one piece with all before it ([Cut]);
//   - with neither CRC nor markers, of the first of 4 FPDUs in a row that are
//     plausible, or without [Config.Plausible] of the fifth of 20 in a row.
//     Payload can look like that; see [Sync.Confidence].
//
// The same holds after an FPDU in error, with Resync. Errors are judged in the
// order of the stream only, so that it does not matter in which order segments come;
// what was found after an error is placed by then, but a receiver never delivers it.
// A length in order that reaches into an FPDU found by its marker is an error as soon
// as the gap between them is closed.
//
// # Cost
//
// Bytes in order are not copied, except for FPDUs that are split over segments or
// have a marker within; others once, or a few times where segments come backwards.
// Nothing is allocated per FPDU in order. Each marker is looked at and each start
// judged a bounded number of times, and a search takes the same time for any
// ULPDU_Length, so that the time is linear in the bytes given, whatever they are.
type Receiver struct {
	cfg   Config
	known bool   // phase, Markers and CRC are known
	shift uint64 // added to offsets so that markers are at multiples of 512
	begun bool   // MidStream: the first segment was given

	next   uint64 // everything before is delivered, or given up
	synced bool   // an FPDU begins at next
	run    buffer // synced: what is held from next on
	in     []byte // synced: bytes of the caller's segment right after run
	fresh  bool   // run or in may hold an FPDU that was not looked at
	doubt  bool   // next comes from a ULPDU_Length that was not verified
	misled bool   // it is that of an FPDU of which only a marker is wrong
	waits  bool   // the FPDU at next is whole, and waits for what follows it
	final  bool   // which will not come
	how    Location

	spans []span // what is known after that, in order, disjoint
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

	queue   []Event
	marks   []MarkerSeen // of the FPDU reported last
	scratch []byte       // its ULPDU, where markers stood in it
	spare   []byte       // a buffer to use again

	stats Stats
}

// Stats counts bytes of one half connection.
type Stats struct {
	Held     int    // held now, after the last segment was worked off
	MostHeld int    // the most ever held so: the reassembly buffer that was needed
	Repeated uint64 // came again, or too late
	Dropped  uint64 // forgotten for lack of room
	Lost     uint64 // given up
}

// New returns a Receiver at the beginning of Full Operation, where offset 0
// is, or at Start, or with MidStream anywhere.
func New(cfg Config) *Receiver {
	if cfg.Buffer == 0 {
		cfg.Buffer = DefaultBuffer
	}
	cfg.Buffer = max(cfg.Buffer, MinBuffer)
	whole := !cfg.MidStream
	r := &Receiver{cfg: cfg, known: whole, begun: whole, synced: whole, how: LocatedInOrder}
	if whole {
		r.next = cfg.Start
	}
	return r
}

// Segment gives the bytes of one TCP segment, which begin at a stream offset: 0 is
// the first byte of Full Operation. Bytes that were there before are ignored, and
// do not replace those; so are bytes from 1<<63 on. b is kept until [Receiver.Next]
// has nothing more to report, and is not changed.
//
// It panics if Next has still something to report of the segment before.
func (r *Receiver) Segment(offset uint64, b []byte) {
	if len(r.segment.b) > 0 || len(r.in) > 0 || r.head() {
		panic("recovery: Receiver.Segment called before Next had reported everything")
	}
	b = b[:min(uint64(len(b)), maxOffset-min(offset, maxOffset))]
	if !r.begun && len(b) > 0 {
		r.begun, r.next = true, offset
	}
	r.segment.offset, r.segment.b = offset, b
}

// SkipTo tells that bytes which are missing below a stream offset will never come: they
// are not in the capture. Call [Receiver.Next] then for what can be told without them. At
// the end of a capture, SkipTo(math.MaxUint64) brings out what is left.
func (r *Receiver) SkipTo(offset uint64) { r.floor = max(r.floor, offset) }

// Next returns the next event; ok is false if there is none until more bytes come
// or are given up. What an event refers to is valid until the next call of any
// method.
func (r *Receiver) Next() (ev Event, ok bool) {
	for !r.head() {
		if !r.step() {
			return Event{}, false
		}
	}
	ev = r.queue[0]
	r.queue = r.queue[:copy(r.queue, r.queue[1:])]
	return ev, true
}

func (r *Receiver) head() bool { return len(r.queue) > 0 }

// step does one thing that makes progress, and reports whether there was one to do.
func (r *Receiver) step() bool {
	switch {
	case r.stopped:
		r.segment.b, r.in = nil, nil
		return false
	case r.synced && r.inOrder():
	case r.outOfOrder():
	case !r.synced && r.findBoundary():
	case r.nextPiece():
	case r.giveUp():
	case r.enforceBound():
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
func (r *Receiver) Delivered() uint64 { return r.next }

// Missing returns the first bytes that are missing in front of others that have
// come; ok is false if none are.
func (r *Receiver) Missing() (from, to uint64, ok bool) {
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
func (r *Receiver) Stats() Stats { return r.stats }

// Mode returns whether there are markers and CRCs, as given or as found. ok is false
// while that, or where the markers are, is still to be found.
func (r *Receiver) Mode() (markers, crc, ok bool) { return r.cfg.Markers, r.cfg.CRC, r.known }

// edge returns the offset of the first byte in order that is not there.
func (r *Receiver) edge() uint64 { return r.next + uint64(r.run.len()+len(r.in)) }

// held returns the bytes held.
func (r *Receiver) held() int {
	n := r.run.len()
	for i := range r.spans {
		n += r.spans[i].len()
	}
	return n
}
