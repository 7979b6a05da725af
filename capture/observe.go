package capture

// observe tells the sink of a packet as it is.
func (t *Tracker) observe(c *Connection, h *Half, d Dir, p *Packet) {
	head := &t.head
	t.segment = Segment{
		Packet: p, Dir: d, Flags: head.flags, Seq: head.seq, Ack: head.ack, Window: head.window,
		Length: head.length, Data: head.payload,
	}
	t.place(h)
	if t.segment.Length > 0 {
		h.Count.Segments++
		h.Count.Repeated += uint64(t.segment.Repeated)
	}
	t.sink.Segment(c, &t.segment)
}

// place finds out where the segment lies in its stream, and cuts off what is ahead
// of it.
func (t *Tracker) place(h *Half) {
	s := &t.segment
	if !h.started {
		return
	}
	at := h.offset(t.dataSeq())
	if at < 0 {
		s.Early = int(min(-at, int64(s.Length)))
		s.Length -= s.Early
		s.Data = s.Data[min(s.Early, len(s.Data)):]
	}
	s.Offset = uint64(max(at, 0))
	s.KeepAlive = s.Length <= 1 && at == int64(h.end)-1 && s.Flags&(SYN|FIN|RST) == 0
	if s.Length > 0 {
		t.classify(h)
	}
}

// dataSeq is the sequence number of the first byte; a SYN takes one.
func (t *Tracker) dataSeq() uint32 {
	if t.head.flags.Has(SYN) {
		return t.head.seq + 1
	}
	return t.head.seq
}

// classify compares a segment with those before it.
func (t *Tracker) classify(h *Half) {
	s := &t.segment
	span := s.span()
	fresh, n := t.fresh(h, span)
	s.Repeated = s.Length - n
	switch {
	case n == 0:
		s.Order = OrderRepeat
	case fresh < h.end:
		s.Order = OrderFills
	case fresh == h.end:
		s.Order = OrderNext
	default:
		s.Order = OrderAhead
	}
	if s.Repeated > 0 {
		s.Match, s.First = t.history.recall(h.latest, span, s.Data, s.Repeated)
	}
}

// fresh returns the offset of the first byte that is new, and how many are.
func (t *Tracker) fresh(h *Half, s Span) (first uint64, n int) {
	first = s.endOffset()
	for at := s.Offset; at < s.endOffset(); {
		from, to := h.firstNew(at, s.endOffset())
		first = min(first, from)
		n += int(to - from)
		at = to
	}
	return first, n
}

// span is where a segment lies.
func (s *Segment) span() Span { return Span{s.Offset, s.Length} }
