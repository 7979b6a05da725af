package ddp

// Ahead returns by how many messages the message of a segment comes after the one that is
// expected or under way; a huge number if it comes before that.
func (q *UntaggedQueue) Ahead(s *Segment) uint32 { return s.MSN - q.msn }

// TakeAhead says whether a segment that came ahead of others may be placed before its turn,
// and notes that it is. The message that is expected is the first of buffers messages that
// can be received; size is the length in octets of the buffer that the segment's message
// gets.
//
// RFC 5041, section 5.3: a Data Sink "MAY perform Placement of DDP Segments out of order".
//
// A segment that may not be placed yet is no error: Check judges it in its turn. So it does
// with one that overlaps what is placed already: only the order in which the two were sent
// tells which of them is wrong, and in its turn the first of them is placed over the other.
func (q *UntaggedQueue) TakeAhead(s *Segment, buffers int, size uint64) bool {
	n := q.Ahead(s)
	if s.QN != q.qn || buffers <= 0 || n > uint32(buffers-1) {
		return false
	}
	mo, octets, size := uint64(s.MO), uint64(s.PayloadLen()), min(size, maxMessage)
	if mo > size || octets > size-mo || n == 0 && q.cover.overlaps(span{mo, mo + octets}) {
		return false
	}
	return octets == 0 || q.aheadOf(s.MSN).Take(mo, octets)
}

// Slack reports whether there is memory for what has come ahead of its turn, and nothing that has: Trim gives that back.
func (q *UntaggedQueue) Slack() bool { return q.ahead != nil && len(q.ahead) == 0 }

// Trim is described with Slack.
func (q *UntaggedQueue) Trim() {
	if q.Slack() {
		q.ahead = nil
	}
}

func (q *UntaggedQueue) aheadOf(msn uint32) *Coverage {
	if q.ahead == nil {
		q.ahead = make(map[uint32]*Coverage)
	}
	c := q.ahead[msn]
	if c == nil {
		c = new(Coverage)
		q.ahead[msn] = c
	}
	return c
}

// Reach returns how many messages, from the expected one on, there are up to the last that
// has something placed ahead of its turn: their buffers are settled.
func (q *UntaggedQueue) Reach() int {
	reach := uint32(0)
	for msn := range q.ahead {
		reach = max(reach, msn-q.msn+1)
	}
	return int(reach)
}
