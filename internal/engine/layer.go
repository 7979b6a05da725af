package engine

import (
	"github.com/goiwarp/iwarp/ddp"
)

// A Layer is the kind of lower layer (LLP) that carries a connection.
type Layer uint8

const (
	// LayerStream is MPA over TCP: Input takes bytes in order, and Output gives FPDUs. A TCP
	// that is aware of MPA also shows what arrives ahead of order: InputAhead.
	LayerStream Layer = iota
	// LayerMessages carries whole DDP Segments, as SCTP does (RFC 5043): Segment takes them,
	// and each slice that Output gives is one. Numbers count what the peer has sent.
	//
	// What MPA has against deadlocks of its startup is not there: either side may send first
	// (RFC 6581, section 4.4.1), so that nobody is nudged, and a Ready-to-Receive indication
	// is sent where it was agreed on, but not waited for, nor is another first message
	// refused.
	LayerMessages
)

// Ahead says what an LLP does with segments that come ahead of others, and bounds what is
// held of them. It is a part of Params.
type Ahead struct {
	// Segments is how many segments ahead of their turn there may be; zero:
	// DefaultAheadSegments. Each takes less than AheadCost bytes of memory.
	Segments int
	// Bytes bounds those held; zero: DefaultAheadBytes. Payload that is placed ahead is not held. With
	// LayerMessages they are those of segments that have to wait for their turn; with LayerStream those of
	// FPDUs that are not there as a whole, and nothing is looked at that is farther ahead.
	Bytes int
	// Budget, if it is set, is what several connections have together for the bytes that are held, and
	// AheadCost for each segment, also of those whose payload is placed. What it has no room for ends a connection
	// with LayerMessages, and is dropped with LayerStream, which brings it again.
	Budget Budget
	// Again says that the LLP brings again what Segment has not taken. Without it, more than
	// may be held ends the connection. Unused with LayerStream, which brings everything again.
	Again bool
}

// AheadCost is what a segment ahead of its turn takes from a Budget, besides its bytes.
const AheadCost = 200

// A Budget bounds the bytes that several connections hold. To make room it may end other connections than the one that
// takes: by HoldsTooMuch, and not within the call.
type Budget interface {
	Take(n int) error // why there is no room
	Give(n int)       // back
}

// Bounds of what is held ahead, where Ahead has none.
const (
	DefaultAheadSegments = 1024
	DefaultAheadBytes    = 256 << 10
)

// AheadStats count segments that did not come in order.
type AheadStats struct {
	Placed      uint64 // whose payload was placed before their turn
	PlacedBytes uint64 // of payload
	Held        uint64 // that had to wait for their turn as a whole
	HeldBytes   uint64
	MostBytes   uint64 // held at one time; of several QPs the sum of each one's
	Repeated    uint64 // that had come before
	Dropped     uint64 // beyond the bounds
}

func (s *AheadStats) add(o *AheadStats) {
	s.Placed += o.Placed
	s.PlacedBytes += o.PlacedBytes
	s.Held += o.Held
	s.HeldBytes += o.HeldBytes
	s.MostBytes += o.MostBytes
	s.Repeated += o.Repeated
	s.Dropped += o.Dropped
}

// whole is what was built on a connection that carries whole segments.
type whole struct {
	bytes    uint64
	segments uint64
}

// endWhole ends a segment that is not framed: it is one slice of what Output returns.
func (q *Machine) endWhole(g *Gather, d draft, h *ddp.Header, n int) {
	size := len(g.arena) - d.at
	g.endRecord(len(g.arena))
	q.traceSent(q.whole.segments, size, h, n)
	q.whole.bytes += uint64(size)
	q.whole.segments++
}

// txBytes returns how many bytes were built for the LLP.
func (q *Machine) txBytes() uint64 {
	if q.Layer == LayerMessages {
		return q.whole.bytes
	}
	return q.tx.Offset()
}

// txOffset returns where in our half connection the next segment will be, and rxOffset
// where the next one in order is in the peer's, in the measure of Failure.Offset.
func (q *Machine) txOffset() uint64 {
	if q.Layer == LayerMessages {
		return q.whole.segments
	}
	return q.tx.Offset()
}

func (q *Machine) rxOffset() uint64 {
	if q.Layer == LayerStream {
		return q.rx.Offset()
	}
	return q.ahead.next
}
