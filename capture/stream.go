package capture

import "bytes"

const (
	// maxWindow is the largest window that TCP has (RFC 7323, section 2.3): what is
	// further away is no acknowledgment or reset of this connection.
	maxWindow = 1 << 30

	// pieceCost is what a piece takes in memory beside its bytes, about.
	pieceCost = 128
)

// A stream is one direction's bytes as far as they were seen.
type stream struct {
	started bool
	start   uint32 // sequence number of stream offset 0

	next  uint64 // all bytes before were given out
	end   uint64 // after the last byte that was seen
	fin   uint64 // where the FIN is, if there is one
	isFin bool
	ended bool

	acked   uint64 // by the receiver
	marked  uint64 // acked, as it was a while ago
	settled uint64 // acked, as it was for long enough: see Config.GapPackets

	pieces ahead  // of next
	held   int    // memory of pieces in bytes
	latest uint64 // record in the history
}

// A piece is bytes of a segment.
type piece struct {
	Span
	data    []byte // fewer than Length if the snap length cut them
	packet  Stamp
	segment Span
}

// setStart sets the sequence number of stream offset 0.
func (s *stream) setStart(seq uint32) {
	if !s.started {
		s.started, s.start = true, seq
	}
}

// offset returns the stream offset that a sequence number stands for: of the
// possible ones that which is nearest. It is negative ahead of the start.
func (s *stream) offset(seq uint32) int64 {
	near := max(s.next, s.acked)
	return int64(near) + int64(int32(seq-s.start-uint32(near)))
}

// firstNew returns the first run of bytes in [from, to) that is new: neither given
// out nor held back. It is empty, at to, if there is none.
func (s *stream) firstNew(from, to uint64) (uint64, uint64) {
	from = max(from, s.next)
	at := s.pieces.search(from)
	for p := s.pieces.at(at); p != nil && from < to && p.Offset <= from; p = s.pieces.at(at) {
		from = p.endOffset()
		at = s.pieces.after(at)
	}
	if from >= to {
		return to, to
	}
	if p := s.pieces.at(at); p != nil {
		to = min(to, p.Offset)
	}
	return from, to
}

// hold keeps a piece, of bytes that are vacant, and returns what memory it takes.
func (s *stream) hold(p piece) int {
	p.data = bytes.Clone(p.data)
	s.pieces.insert(p)
	cost := p.cost()
	s.held += cost
	return cost
}

func (p *piece) cost() int { return pieceCost + cap(p.data) }

// pop takes out the first piece.
func (s *stream) pop() piece {
	p := s.pieces.pop()
	s.held -= p.cost()
	return p
}

// holeEnd returns where the bytes go on after a hole at next.
func (s *stream) holeEnd() (to uint64, ok bool) {
	if !s.pieces.empty() {
		to, ok = s.pieces.first().Offset, true
	}
	if s.isFin && (!ok || s.fin < to) {
		to, ok = s.fin, true
	}
	return to, ok && to > s.next
}

// finishAt notes a FIN after the last byte.
func (s *stream) finishAt(offset int64) {
	if !s.isFin && offset >= int64(s.next) {
		s.isFin, s.fin = true, uint64(offset)
		s.acked = min(s.acked, s.fin)
	}
}

// acknowledge notes what the receiver has acknowledged; the FIN does not count.
func (s *stream) acknowledge(ack uint32) {
	if !s.started {
		return
	}
	to := s.offset(ack)
	if to > int64(s.acked) && to <= int64(max(s.acked, s.end)+maxWindow) {
		s.acked = uint64(to)
	}
	if s.isFin {
		s.acked = min(s.acked, s.fin)
	}
}

// reset reports whether a RST with this sequence number is of the connection.
func (s *stream) reset(seq uint32) bool {
	at := s.offset(seq)
	return !s.started || at >= int64(s.acked) && at <= int64(max(s.acked, s.end)+maxWindow)
}

// ageAcks lets time pass for acknowledgments: all of it if nothing was seen for
// long.
func (s *stream) ageAcks(all bool) {
	if all {
		s.marked = s.acked
	}
	s.settled, s.marked = s.marked, s.acked
}
