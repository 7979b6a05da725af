package recovery

import (
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// Kind is a kind of [Event].
type Kind uint8

// What a [Receiver] reports.
const (
	Placed   Kind = iota + 1 // a ULPDU, whole and valid
	Cut                      // an FPDU of which bytes were given up: its head
	Lost                     // bytes given up: missing, or in no FPDU that could be found
	Failed                   // an FPDU in error, with Err
	Resynced                 // the boundary of an FPDU was found again, with Sync
	Dropped                  // bytes forgotten for lack of room: they may come again
)

// String returns the event in a word.
func (e Kind) String() string {
	return wording.Name(e, "event", []string{"", "placed", "cut", "lost", "failed", "resynced", "dropped"})
}

// Location is how the start of an FPDU was found: RFC 5044, section 6.
type Location uint8

// The ways to find an FPDU, the surest first.
const (
	LocatedInOrder  Location = iota + 1 // by the FPDU in front, all before it being there
	LocatedByMarker                     // out of order, by a marker in it
	LocatedByLength                     // out of order, by the FPDU in front
	LocatedByScan                       // by a search after lost bytes; see [Sync]
	// by the ULPDU_Length of an FPDU that was cut, or mismarked without a CRC: not verified
	LocatedByCut
)

// String returns the way in words.
func (l Location) String() string {
	return wording.Name(l, "location", []string{"", "in order", "by marker", "by length", "by scan",
		"by the length of a cut FPDU"})
}

// MarkerSeen is a marker in an FPDU.
type MarkerSeen struct {
	Offset  uint64 // stream offset of its first byte
	FPDUPTR uint16 // as received, with all its bits
	Valid   bool   // it points to the ULPDU_Length of its FPDU
}

// Event is one event of a [Receiver].
type Event struct {
	Kind Kind
	// Located tells how an FPDU was found.
	Located Location
	// CRCValid tells that the CRC was checked and is right.
	CRCValid bool
	// Offset and End are the stream offsets of the first byte and after the last
	// one: of an FPDU, a marker in front included; of bytes lost, dropped, or passed
	// over by a resynchronization. An FPDU that failed may end elsewhere.
	Offset, End uint64
	// Delivered is the stream offset up to which everything was handed over (or
	// given up): ULPDUs that end there or before may be delivered.
	Delivered uint64
	// Length is the FPDU's ULPDU_Length, in bytes.
	Length int
	// ULPDU is what goes to DDP. Of a cut FPDU it is the beginning. Of one that
	// failed it is not there, unless only a marker is wrong and the CRC is right, or
	// there are no CRCs and it is plausible.
	ULPDU []byte
	// Bytes is an FPDU as on the stream, from ULPDU_Length, or the marker in front of
	// it, to the CRC. It is nil where not all bytes are there.
	Bytes []byte
	// Markers are the markers of an FPDU, of a cut one those that are there.
	Markers []MarkerSeen
	// Err is the error of an FPDU that failed.
	Err *mpa.Error
	// Sync is what a resynchronization rests on.
	Sync Sync
}

// emit reports an event, with what is delivered by now.
func (r *Receiver) emit(ev Event) {
	ev.Delivered = r.next
	r.queue = append(r.queue, ev)
}

// reportLost reports bytes up to an offset as given up, and moves there.
func (r *Receiver) reportLost(to uint64) {
	if to <= r.next {
		return
	}
	from := r.next
	r.next = to
	r.stats.Lost += to - from
	r.emit(Event{Kind: Lost, Offset: from, End: to})
}
