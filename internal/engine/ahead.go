package engine

import (
	"bytes"
	"cmp"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// ahead is what has come ahead of its turn. It is nil over a stream of which nothing was shown: see shown.go.
type ahead struct {
	budget Budget // nil: there is none
	next   uint64 // number of the segment that is next in order
	held   map[uint64]heldSegment
	bytes  int // held
	ending ending
	gapAt  uint64
	gapBy  time.Time // when the segment with the number gapAt is to have come; zero: never
}

// A heldSegment waits for its turn.
type heldSegment struct {
	at, end uint64
	size    int  // of the segment, bytes
	placed  bool // the payload is where it belongs
	// If it is placed, the first bytes of the segment; otherwise all of it.
	header [ddp.UntaggedHeaderLen]byte
	ulpdu  []byte
	crc    [layout.CRCLen]byte // of its FPDU, if it has one
}

// An ending is how the peer's half ends.
type ending struct {
	at     uint64
	err    *mpa.Error // of the LLP; nil: it ends in order
	known  bool
	beyond bool // something came that lies after it
	told   bool // it had its turn
}

func (q *Machine) beginAhead() {
	if q.Layer == LayerMessages {
		q.ahead = &ahead{next: q.First, budget: q.Ahead.Budget}
	}
	q.Ahead.Segments = cmp.Or(max(q.Ahead.Segments, 0), DefaultAheadSegments)
	q.Ahead.Bytes = cmp.Or(max(q.Ahead.Bytes, 0), DefaultAheadBytes)
}

// HeldAhead returns how many bytes are held of segments that have to wait for others.
func (q *Machine) HeldAhead() int {
	if q.ahead == nil {
		return 0
	}
	return q.ahead.bytes
}

// segments returns how many wait for their turn.
func (a *ahead) segments() int {
	if a == nil {
		return 0
	}
	return len(a.held)
}

// forget drops all that is held: it will never have its turn.
func (a *ahead) forget() {
	if a == nil {
		return
	}
	a.release(len(a.held), a.bytes)
	a.held, a.gapBy = nil, time.Time{}
}

// reserve has one segment more wait, and so many bytes held of it, if there is room for them.
func (a *ahead) reserve(n int) error {
	if a.budget != nil {
		if err := a.budget.Take(AheadCost + n); err != nil {
			return err
		}
	}
	a.bytes += n
	return nil
}

// release has so many segments less wait, and so many bytes less held of them.
func (a *ahead) release(segments, n int) {
	a.bytes -= n
	if a.budget != nil && segments > 0 {
		a.budget.Give(segments*AheadCost + n)
	}
}

func (a *ahead) has(at uint64) bool {
	_, ok := a.held[at]
	return ok
}

// endAt notes where the peer's half ends. The first that is said holds.
func (a *ahead) endAt(at uint64, err *mpa.Error) {
	if a == nil || a.ending.known { // nil: the connection is over
		return
	}
	a.ending = ending{known: true, at: at, err: err, beyond: at < a.next}
	for h := range a.held {
		a.ending.beyond = a.ending.beyond || h >= at
	}
}

// pastEnd notes, and reports, that a segment lies after the end of the peer's half.
func (a *ahead) pastEnd(at uint64) bool {
	if !a.ending.known || at < a.ending.at {
		return false
	}
	a.ending.beyond = true
	return true
}

// atEnd reports whether the end of the peer's half has its turn.
func (a *ahead) atEnd() bool {
	return a.ending.known && a.next >= a.ending.at
}

// pop takes out the segment that is next in order.
func (a *ahead) pop() (h heldSegment, ok bool) {
	h, ok = a.held[a.next]
	if !ok || a.ending.known && h.at >= a.ending.at {
		return heldSegment{}, false
	}
	delete(a.held, h.at)
	a.release(1, len(h.ulpdu))
	return h, true
}

func (a *ahead) slack() bool { return a != nil && a.held != nil && len(a.held) == 0 }

// trim gives back the memory of the table, which does not shrink by itself.
func (a *ahead) trim() {
	if a.slack() {
		a.held = nil
	}
}

// keep has a segment wait until its turn, and places its payload if it can.
func (q *Machine) keep(at, end uint64, ulpdu []byte) bool {
	a := q.ahead
	if len(a.held) >= q.Ahead.Segments {
		return q.refuse(wording.Count(q.Ahead.Segments, "segment"), nil)
	}
	h := heldSegment{at: at, end: end, size: len(ulpdu)}
	n, placed := q.placeAhead(ulpdu)
	if placed {
		return q.keepPlaced(&h, ulpdu, n)
	}
	if len(ulpdu) > q.Ahead.Bytes-a.bytes {
		return q.refuse(wording.Bytes(q.Ahead.Bytes), nil)
	}
	if err := a.reserve(len(ulpdu)); err != nil {
		return q.refuse(budgetSpent, err)
	}
	h.ulpdu = bytes.Clone(ulpdu)
	q.countHeld(len(ulpdu))
	a.enter(&h)
	return true
}

// keepPlaced notes a segment of which n bytes of payload are in place.
func (q *Machine) keepPlaced(h *heldSegment, ulpdu []byte, n int) bool {
	if err := q.ahead.reserve(0); err != nil {
		return q.refuse(budgetSpent, err)
	}
	h.placed = true
	copy(h.header[:], ulpdu)
	q.ahead.hold(h, n, &q.stats.Ahead)
	return true
}

// hold has a segment wait for its turn of which n bytes of payload are in place.
func (a *ahead) hold(h *heldSegment, n int, s *AheadStats) {
	s.Placed++
	s.PlacedBytes += uint64(n)
	a.enter(h)
}

func (a *ahead) enter(h *heldSegment) {
	if a.held == nil {
		a.held = make(map[uint64]heldSegment)
	}
	a.held[h.at] = *h
}

func (q *Machine) countHeld(n int) {
	s := &q.stats.Ahead
	s.Held++
	s.HeldBytes += uint64(n)
	s.MostBytes = max(s.MostBytes, uint64(q.ahead.bytes))
}

// budgetSpent is the bound of a Budget.
const budgetSpent = "what all connections together may hold"

// HoldsTooMuch ends the connection to make room in its Budget, which says why.
func (q *Machine) HoldsTooMuch(now time.Time, why error) {
	switch {
	case !q.listens():
		return
	case q.ReceiverNotReady():
		q.refuseRNR(budgetSpent, why)
	case q.Layer == LayerMessages:
		q.refuse(budgetSpent, why)
	}
	q.advance(now)
}

// refuse drops a segment that is beyond a bound. An LLP that does not bring it again has lost
// it: no other can have its turn any more.
func (q *Machine) refuse(bound string, why error) bool {
	q.stats.Ahead.Dropped++
	if !q.Ahead.Again {
		q.fail(&Failure{
			Code: rdmap.CodeMPALocalCatastrophic, Offset: q.ahead.next,
			Reason: "a segment is missing, and more came ahead of it than is held: " + bound, Err: why,
		}, nil)
	}
	return false
}

// placeAhead places the payload of a segment that is ahead of its turn, and returns how many
// bytes that is. If it reports false the segment waits as it is. Nothing changes but
// the memory that the segment is for, and the note of what is placed there.
func (q *Machine) placeAhead(ulpdu []byte) (n int, ok bool) {
	s, err := ddp.Parse(ulpdu)
	if q.state != RTS || err != nil || ddp.CheckVersion(&s.Header, q.DDPVersion) != nil ||
		rdmap.CheckSegment(&s, q.RDMAPVersion) != nil {
		return 0, false
	}
	n = len(s.Payload)
	switch op := rdmap.OpcodeOf(&s.Header); op {
	case rdmap.OpWrite:
		return n, q.cfg.Memory.Place(s.STag, s.TO, layout.Plain(s.Payload)) == memory.None
	case rdmap.OpReadResponse:
		return n, n == 0 || q.placeResponseAhead(&s)
	case rdmap.OpSend, rdmap.OpSendInvalidate, rdmap.OpSendSE, rdmap.OpSendSEInvalidate:
		return n, q.placeSendAhead(&s)
	}
	return 0, false
}

// placeResponseAhead places a segment with payload of the response to any Read.
func (q *Machine) placeResponseAhead(s *ddp.Segment) bool {
	read, ok := q.orq.TakeAhead(s)
	if !ok {
		return false
	}
	sink := q.sink(read.ID)
	if q.cfg.Memory.LocalPlace(sink.Region, &sink.Term, sink.Offset+int(s.TO-read.SinkTO),
		layout.Plain(s.Payload)) != memory.None {
		q.orq.DropAhead(s)
		return false
	}
	return true
}

// placeSendAhead places a segment of a Send into the receive that its message will get. While
// the peer's first segment has not come, that is not known: it may be a Send that takes none.
func (q *Machine) placeSendAhead(s *ddp.Segment) bool {
	if !q.heard {
		return false
	}
	queue := &q.queues[rdmap.QNSend]
	to, buffers := q.receiveOf(queue.Ahead(s))
	if to == nil || !queue.TakeAhead(s, buffers, q.roomOf(to)) {
		return false
	}
	if q.scatter(to, uint64(s.MO), layout.Plain(s.Payload)) != memory.None {
		queue.DropAhead(s)
		return false
	}
	return true
}

// receiveOf returns the receive that the n-th message from the expected one on will get, nil if
// that is not known, and how many messages have a receive.
func (q *Machine) receiveOf(n uint32) (to *RecvWork, buffers int) {
	if q.taken {
		buffers = 1
		if n == 0 {
			return q.current, buffers
		}
		n--
	}
	buffers += q.rq.Len() // none with a Source
	if uint64(n) >= uint64(q.rq.Len()) {
		return nil, buffers
	}
	return q.rq.At(q.rq.Head() + uint64(n)), buffers
}
