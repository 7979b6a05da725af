package ddp

// Ahead returns by how many messages the message of a segment comes after the one that is
// expected or under way; a huge number if it comes before that.
func (q *UntaggedQueue) Ahead(s *Segment) uint32 { return s.MSN - q.msn }

// TakeAhead says whether a segment that came ahead of others may be placed before its turn,
// and notes that it is. The message that is expected is the first of buffers messages that
// can be received; size is the length in bytes of the buffer that the segment's message
// gets.
//
// RFC 5041, section 5.3: a Data Sink "MAY perform Placement of DDP Segments out of order".
//
// A segment that may not be placed yet is no error: Check judges it in its turn. So it does
// with one that overlaps what is placed already, where the bytes that were sent later stay: of two
// that came ahead, it is not known yet which these are.
func (q *UntaggedQueue) TakeAhead(s *Segment, buffers int, size uint64) bool {
	n := q.Ahead(s)
	if s.QN != q.qn || buffers <= 0 || n > uint32(buffers-1) {
		return false
	}
	mo, length, size := uint64(s.MO), uint64(s.PayloadLen()), min(size, maxMessage)
	if mo > size || length > size-mo || n == 0 && q.cover.Fresh(mo, length) < length {
		return false
	}
	return length == 0 || q.earlyOf(s.MSN).Take(mo, length)
}

// DropAhead takes back what TakeAhead has noted of a segment, which has its turn, or was not placed after all.
func (q *UntaggedQueue) DropAhead(s *Segment) {
	q.early[s.MSN].Drop(uint64(s.MO), uint64(s.PayloadLen()))
}

// Early returns what of the message under way was placed ahead of its turn; nil if that is nothing.
func (q *UntaggedQueue) Early() *Early {
	if q.early == nil {
		return nil
	}
	return q.early[q.msn]
}

// Slack reports whether there is memory for what has come ahead of its turn, and nothing that has: Trim gives that
// back.
func (q *UntaggedQueue) Slack() bool { return q.early != nil && len(q.early) == 0 }

// Trim is described with Slack.
func (q *UntaggedQueue) Trim() {
	if q.Slack() {
		q.early = nil
	}
}

func (q *UntaggedQueue) earlyOf(msn uint32) *Early {
	if q.early == nil {
		q.early = make(map[uint32]*Early)
	}
	e := q.early[msn]
	if e == nil {
		e = new(Early)
		q.early[msn] = e
	}
	return e
}

// Reach returns how many messages, from the expected one on, there are up to the last that
// has something placed ahead of its turn: their buffers are settled.
func (q *UntaggedQueue) Reach() int {
	reach := uint32(0)
	for msn := range q.early {
		reach = max(reach, msn-q.msn+1)
	}
	return int(reach)
}
