package engine

import (
	"bytes"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/mpa"
)

// An MPA-aware TCP shows bytes that have arrived while others in front of them are missing
// (RFC 5044, section 3). Package recovery finds FPDUs in them, and their payload is placed as
// that of any segment ahead of its turn (segment.go).
//
// They come once more: Input gets the whole stream in order, judges it as it always does,
// and takes an FPDU for placed if it has the same place, header and CRC as the one that was. So
// whatever is shown, or is not, changes when payload is placed and nothing else: no completion, no
// error, no answer. TCP decides what was sent, with one exception: of two versions of a payload with
// one CRC, which a peer must make for the purpose, the one that came first stays.
//
// RFC 5044, Appendix A.3, has segments "that duplicate data already received and processed" not
// overwrite it. That is so of an FPDU that is the same; of one that is not, TCP's is placed, as
// Input does not rely on TCP to have committed itself to what it has shown.
//
// It takes markers and CRCs. Without markers hardly an FPDU is found ahead of others, as only the
// one in front of it tells where it begins; without CRCs, bytes that TCP keeps one version
// of, where a peer has sent two, could not be told from others.
//
// While nothing is missing there is no Receiver, and no cost. A nil shown is that of a connection of which nothing
// was shown.
type shown struct {
	missing *recovery.Receiver // looks for FPDUs after what is missing
	end     uint64             // of what was shown; 0: nothing is missing
	off     bool               // what was shown is no stream of FPDUs: nothing is looked at any more
	taken   int                // from the Budget
}

// InputAhead takes bytes that are on the stream from an offset on, while others in front of them may be
// missing. Input gets all of them later. They are read and not kept.
func (q *Machine) InputAhead(now time.Time, at uint64, b []byte) {
	if len(b) == 0 || !q.looksAhead() {
		return
	}
	q.arrives(now)
	if q.shown == nil {
		q.shown, q.ahead = &shown{}, &ahead{} // which is weighed here, as a whole
	}
	if end, reach := at+uint64(len(b)), q.rx.Offset()+uint64(q.Ahead.Bytes); end < at || end > reach {
		q.stats.Ahead.Dropped++
	} else {
		q.show(at, end, b)
		q.weighShown()
	}
	q.arrived(now)
}

// looksAhead reports whether bytes ahead of others may be of use. [R03]
func (q *Machine) looksAhead() bool {
	return q.state == RTS && q.Layer == LayerStream && q.MarkersReceive && q.CRC && !q.peerEnded() &&
		!(q.shown != nil && q.shown.off)
}

// show looks for FPDUs in bytes that came ahead, if all connections together may hold as many.
func (q *Machine) show(at, end uint64, b []byte) {
	if budget := q.Ahead.Budget; budget != nil {
		if budget.Take(len(b)) != nil {
			q.stats.Ahead.Dropped++
			return
		}
		q.shown.taken += len(b)
	}
	if q.shown.missing == nil {
		q.shown.missing = recovery.New(recovery.Config{Markers: true, CRC: true,
			Buffer: q.Ahead.Bytes, Start: q.rx.Offset()})
	}
	q.shown.end = max(q.shown.end, end)
	q.look(at, b, q.rx.Offset())
}

// look gives bytes to the Receiver, and places what it finds from an offset on.
func (q *Machine) look(at uint64, b []byte, from uint64) {
	r := q.shown.missing
	r.Segment(at, b)
	for ev, ok := r.Next(); ok; ev, ok = r.Next() {
		switch {
		case ev.Kind == recovery.Dropped:
			q.stats.Ahead.Dropped++
		case ev.Kind == recovery.Failed:
			q.shown.missing, q.shown.off = nil, true // Input finds it, if it is on the stream
		case ev.Offset >= from:
			q.placeShown(&ev)
		}
	}
	q.stats.Ahead.MostBytes = max(q.stats.Ahead.MostBytes, uint64(r.Stats().MostHeld))
}

// placeShown places the payload of an FPDU, if it can, and notes what was placed.
func (q *Machine) placeShown(ev *recovery.Event) {
	if len(q.ahead.held) >= q.Ahead.Segments {
		q.stats.Ahead.Dropped++
		return
	}
	n, ok := q.placeAhead(ev.ULPDU)
	if !ok {
		q.stats.Ahead.Held++
		q.stats.Ahead.HeldBytes += uint64(len(ev.ULPDU))
		return
	}
	h := heldSegment{at: ev.Offset, end: ev.End, size: len(ev.ULPDU), placed: true}
	copy(h.header[:], ev.ULPDU)
	copy(h.crc[:], ev.Bytes[len(ev.Bytes)-layout.CRCLen:])
	q.ahead.hold(&h, n, &q.stats.Ahead)
}

// lookAgain gives bytes that are in order now to the Receiver, if there is one: what it
// holds after them may become whole.
func (q *Machine) lookAgain(b []byte) {
	if q.shown != nil && q.shown.missing != nil && q.state == RTS {
		q.look(q.rx.Offset(), b, q.rx.Offset()+uint64(len(b)))
	}
}

// lacks reports whether something is missing in front of what was shown.
func (s *shown) lacks() bool { return s != nil && s.end != 0 }

// caughtUp forgets what was shown, when all of it has come in order.
func (q *Machine) caughtUp(end uint64) {
	if q.shown.lacks() && end >= q.shown.end {
		q.shown.missing, q.shown.end = nil, 0
		clear(q.ahead.held)
	}
}

// weighShown settles with the Budget what is held: bytes of FPDUs that are not whole, and notes of those that are
// placed. If that is too much, all of it is dropped, as it comes again.
func (q *Machine) weighShown() {
	budget := q.Ahead.Budget
	if q.shown == nil || budget == nil {
		return
	}
	held := len(q.ahead.held) * AheadCost
	if r := q.shown.missing; r != nil {
		held += r.Stats().Held
	}
	if more := held - q.shown.taken; more > 0 && budget.Take(more) != nil {
		q.stats.Ahead.Dropped++
		q.shown.missing, held = nil, 0
		clear(q.ahead.held)
	}
	if less := q.shown.taken - held; less > 0 {
		budget.Give(less)
	}
	q.shown.taken = held
}

// forgetShown forgets what was shown, as nothing more is heard.
func (q *Machine) forgetShown() {
	if q.shown != nil && q.shown.taken > 0 {
		q.Ahead.Budget.Give(q.shown.taken)
	}
	q.shown = nil
}

// onPlaced takes an FPDU through DDP and RDMAP whose payload was placed before its turn. It
// reports false, and does nothing, if it was not.
func (q *Machine) onPlaced(f *mpa.FPDU, data []byte) bool {
	h, ok := q.ahead.held[f.Offset]
	if !ok {
		return false
	}
	delete(q.ahead.held, f.Offset)
	f.Content.CopyTo(q.rxHeader[:])
	n := min(h.size, ddp.UntaggedHeaderLen)
	if h.size != f.Content.Len() || !bytes.Equal(h.header[:n], q.rxHeader[:n]) ||
		!bytes.Equal(h.crc[:], data[len(data)-layout.CRCLen:]) {
		return false
	}
	q.inPlace = true
	q.onULPDU(f, q.rxHeader[:n], h.size)
	q.inPlace = false
	return true
}
