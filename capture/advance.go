package capture

// advance does what follows from the packet for the order of bytes, in its
// direction and in the other one, whose bytes it may acknowledge.
func (t *Tracker) advance(c *Connection, h *Half, d Dir) {
	flags, peer := t.head.flags, &c.Halves[d.Peer()]
	if flags.Has(ACK) && !flags.Has(RST) {
		peer.acknowledge(t.head.ack)
	}
	t.accept(c, h, d)
	if flags.Has(FIN) && !flags.Has(RST) {
		if h.FIN == 0 {
			h.FIN = t.now.Number
		}
		h.finishAt(h.offset(t.dataSeq()) + int64(t.head.length))
	}
	t.proceed(c, d)
	t.proceed(c, d.Peer())
	if flags.Has(RST) {
		t.resetBy(c, h)
	}
}

// resetBy ends both directions, if the RST is meant for this connection.
func (t *Tracker) resetBy(c *Connection, h *Half) {
	if !h.reset(t.head.seq) {
		return
	}
	if h.RST == 0 {
		h.RST = t.now.Number
	}
	t.finish(c, Forward, EndRST)
	t.finish(c, Backward, EndRST)
}

// accept gives out those bytes of the segment that are new and in order, and
// holds back those that are ahead of a hole.
func (t *Tracker) accept(c *Connection, h *Half, d Dir) {
	s := &t.segment
	if h.ended {
		return
	}
	span := s.span()
	for at := span.Offset; at < span.endOffset(); {
		from, to := h.firstNew(at, span.endOffset())
		if from < to {
			p := t.piece(from, to)
			h.latest = t.history.add(&p, h.latest)
			if from == h.next {
				t.deliver(c, h, d, &p)
			} else {
				t.held += h.hold(p)
			}
		}
		at = to
	}
	h.end = max(h.end, span.endOffset())
}

// piece returns a part of the segment.
func (t *Tracker) piece(from, to uint64) piece {
	s := &t.segment
	n := uint64(len(s.Data))
	data := s.Data[min(from-s.Offset, n):min(to-s.Offset, n)]
	return piece{Span{from, int(to - from)}, data, t.now, s.span()}
}

// deliver gives out the next bytes of a direction.
func (t *Tracker) deliver(c *Connection, h *Half, d Dir, p *piece) {
	if n := uint64(len(p.data)); n > 0 {
		at := h.next
		h.next += n
		h.Count.Bytes += n
		t.sink.Data(c, Data{d, at, p.data, p.packet, p.segment})
	}
	if to := p.endOffset(); to > h.next {
		t.gap(c, h, Gap{d, h.next, to - h.next, CauseSnap, p.packet})
	}
}

// gap leaves out bytes of a direction.
func (t *Tracker) gap(c *Connection, h *Half, g Gap) {
	h.next += g.Length
	h.end = max(h.end, h.next)
	h.Count.Gaps++
	h.Count.Missing += g.Length
	t.sink.Gap(c, g)
}

// proceed goes on with a direction as far as bytes are there or are given up.
func (t *Tracker) proceed(c *Connection, d Dir) {
	h := &c.Halves[d]
	for !h.ended {
		t.drain(c, h, d)
		if h.isFin && h.next >= h.fin {
			t.finish(c, d, EndFIN)
			return
		}
		to, ok := h.holeEnd()
		if !ok || !t.givesUp(h, to) {
			return
		}
		t.skipGap(c, h, d, to, CauseLimit)
	}
}

// drain gives out the pieces that no hole holds back.
func (t *Tracker) drain(c *Connection, h *Half, d Dir) {
	for !h.pieces.empty() && h.pieces.first().Offset <= h.next {
		held := h.held
		p := h.pop()
		t.held -= held - h.held
		t.deliver(c, h, d, &p)
	}
}

// givesUp reports whether a hole up to an offset will not be filled, or must not
// be waited for.
func (t *Tracker) givesUp(h *Half, to uint64) bool {
	return h.settled >= to || h.held > t.cfg.MaxBuffered ||
		t.held > t.cfg.MaxBufferedTotal && h.held > 0
}

// skipGap makes a gap up to an offset. What was acknowledged is lost, and what was
// not has another cause.
func (t *Tracker) skipGap(c *Connection, h *Half, d Dir, to uint64, unacked Cause) {
	if lost := min(to, h.acked); lost > h.next {
		t.gap(c, h, Gap{d, h.next, lost - h.next, CauseLost, t.now})
	}
	if to > h.next {
		t.gap(c, h, Gap{d, h.next, to - h.next, unacked, t.now})
	}
}

// finish ends a direction, with all that was held back and what is known to be
// missing. It does nothing if the direction has ended. Where a FIN was captured, that is
// the end, whatever comes later.
func (t *Tracker) finish(c *Connection, d Dir, why EndReason) {
	h := &c.Halves[d]
	if h.ended {
		return
	}
	t.deliverAll(c, h, d)
	if h.isFin {
		why = EndFIN
	}
	t.held -= h.held
	h.held, h.pieces, h.ended = 0, ahead{}, true
	t.sink.Ended(c, End{Dir: d, Offset: h.next, Reason: why, Packet: t.now, Peer: why == EndRST && h.RST == 0})
}

// deliverAll gives out everything of a direction, with its gaps.
func (t *Tracker) deliverAll(c *Connection, h *Half, d Dir) {
	for {
		t.drain(c, h, d)
		to, ok := h.holeEnd()
		if !ok {
			break
		}
		t.skipGap(c, h, d, to, CauseEnd)
	}
	t.skipGap(c, h, d, h.acked, CauseEnd)
}
