package usertcp

import "gvisor.dev/gvisor/pkg/tcpip/header"

// A verdict is what the tap makes of a segment of the peer's. TCP gets all but those that are refused.
type verdict uint8

// The verdicts.
const (
	unread      verdict = iota // no TCP segment, or not a whole one as it comes from the link
	notLookedAt                // of no flow, or of one that nobody wants shown
	inOrder                    // what comes next: Read brings it
	behind                     // begins before that
	ahead                      // is shown
	noData
	aSYN
	badSum
	aReset
	noACK
	urgent
	outside   // not all of it within the window
	behindFIN // the peer has ended its half before it
	badTime   // an old timestamp, or none
	suspect   // may be made up: RFC 5961
	refused   // is: TCP does not get it
)

// String returns the verdict in words.
func (v verdict) String() string {
	return [...]string{"not read", "not looked at", "in order", "behind", "ahead", "no data", "a SYN", "bad checksum",
		"a reset", "no ACK", "urgent",
		"outside the window", "after the FIN", "bad timestamp", "suspect", "refused"}[v]
}

// inbound judges a segment of the peer's. Those that are ahead of what comes next are checked for all that TCP checks,
// and more, so that nothing is shown that TCP does not take: RFC 5044, appendix A.3. What comes next is TCP's own
// business.
func (f *flow) inbound(s *segment) verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.suspects(s):
		return suspect
	case len(s.payload) > 0 && !f.watched.Load() && !s.has(header.TCPFlagSyn|header.TCPFlagFin), f.blank:
		return notLookedAt
	case s.has(header.TCPFlagSyn):
		f.peerSYN(s)
		return aSYN
	case !f.synced:
		return notLookedAt
	case s.seq == f.next && len(s.payload) > 0 && !s.has(header.TCPFlagFin):
		f.advance(s)
		return inOrder
	case before(s.seq, f.next):
		// Also the zero byte with which gVisor's TCP asks for a window: what is in its place was never compared.
		return behind
	}
	if v := f.check(s); v != ahead {
		return v
	}
	f.remember(s)
	switch {
	case len(s.payload) == 0:
		return noData
	case s.seq == f.next:
		f.advance(s)
		return inOrder
	}
	return ahead
}

// advance takes a segment for the next in order. If it is not, as its checksum is wrong for instance, what is shown
// is a little less.
func (f *flow) advance(s *segment) {
	if end := s.seq + uint32(len(s.payload)); !before(f.rcvEdge, end) {
		f.next = end
	}
}

// peerSYN learns from the peer's SYN that answers ours.
func (f *flow) peerSYN(s *segment) {
	if f.synced || s.has(header.TCPFlagAck) && s.ack != f.sndNxt || !s.intact() {
		return
	}
	f.theirs = s.syn()
	f.agree(f.theirs)
}

// check returns ahead for a segment that TCP is going to take, and otherwise why it is not shown.
func (f *flow) check(s *segment) verdict {
	end := s.seq + uint32(len(s.payload))
	switch {
	case !s.intact():
		return badSum
	case s.has(header.TCPFlagRst):
		return aReset
	case !s.has(header.TCPFlagAck):
		return noACK
	case s.has(header.TCPFlagUrg):
		return urgent
	case before(s.seq, f.rcvNxt) || before(f.rcvEdge, end):
		return outside
	case f.fin && before(f.finSeq, end):
		return behindFIN
	case f.agreed.TS && !f.timely(s):
		return badTime
	}
	return ahead
}

// timely checks the timestamp, which is in every segment if it was agreed on.
func (f *flow) timely(s *segment) bool {
	// RFC 7323, section 5.3: "R1) If there is a Timestamps option in the arriving segment, SEG.TSval < TS.Recent, [...]
	// then treat the arriving segment as not acceptable". Section 3.2: "If a non-<RST> segment is received without a
	// TSopt, a TCP SHOULD silently drop the segment."
	o := header.ParseTCPOptions(s.tcp.Options())
	return o.TS && !before(o.TSVal, f.recent)
}

// remember takes note of where the peer's half ends.
func (f *flow) remember(s *segment) {
	end := s.seq + uint32(len(s.payload))
	if s.has(header.TCPFlagFin) && (!f.fin || before(end, f.finSeq)) {
		f.fin, f.finSeq = true, end
	}
}
