package usertcp

import (
	"bytes"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// A guard is what a flow knows, besides, to tell the peer's segments from those that somebody makes up who does not
// see them. gVisor's TCP ends a connection by any RST in the window, and looks at no ACK field: so TCP gets neither.
type guard struct {
	taken atomic.Uint32 // RCV.NXT of TCP's own, once the flow is synced
	told  atomic.Bool   // TCP has told of its numbers, which are those of one SYN of ours
	held  atomic.Bool   // there is a reset

	// The lock of the flow guards the rest.
	coming     uint32 // what RCV.NXT becomes by what has arrived, if TCP takes it
	reset      []byte // the packet of a RST that is behind what TCP has not taken yet, or nil
	resetSeq   uint32
	stamp      uint32 // the TSval of our last packet
	challenges []time.Time
}

// resetWait is how long a RST waits for TCP to take what came before it. Then the peer is asked.
const resetWait = 20 * time.Millisecond

// suspects reports whether a segment needs more than a glance. If not, it learns what the segment says of the peer.
func (f *flow) suspects(s *segment) bool {
	if !f.synced {
		// RFC 5961, section 3.2: "In the SYN-SENT state [...], the RST is acceptable if the ACK field acknowledges the
		// SYN." TCP itself sees to that. (U04)
		return false
	}
	taken := f.taken.Load()
	if before(f.coming, taken) {
		f.coming = taken
	}
	switch {
	case s.has(header.TCPFlagRst):
		return s.seq != taken
	case s.has(header.TCPFlagSyn):
		return true
	case !s.has(header.TCPFlagAck):
		return false // TCP drops it
	case !f.acceptable(s.ack):
		return true
	}
	f.learn(s, taken)
	return false
}

// acceptable checks what is acknowledged.
func (f *flow) acceptable(ack uint32) bool {
	// RFC 5961, section 5.2: "The ACK value is considered acceptable only if it is in the range of
	// ((SND.UNA - MAX.SND.WND) <= SEG.ACK <= SND.NXT)." (U06)
	return !before(f.sndNxt, ack) && !before(ack, f.sndUna-f.maxWindow)
}

// window is how many bytes after those taken the peer may send. There are none where TCP has taken more than it said
// last.
func (f *flow) window(taken uint32) uint32 {
	if before(taken, f.rcvEdge) {
		return f.rcvEdge - taken
	}
	return 0
}

// learn takes what a segment says that is not suspect. One without the right sum does no harm: it can move each of
// these no farther than the peer may.
func (f *flow) learn(s *segment, taken uint32) {
	if s.seq-taken <= f.window(taken) {
		f.maxWindow = max(f.maxWindow, scaled(s, f.agreed, f.theirs))
		if before(f.sndUna, s.ack) {
			f.sndUna = s.ack
		}
	}
	if end := s.endSeq(); !before(f.coming, s.seq) && before(f.coming, end) {
		f.coming = end
	}
}

// learnFromTCP takes what TCP tells of itself with its first segment. Its numbers may be those of an earlier SYN of
// ours than the one that the flow began with: it takes its cookies back also when it has begun to remember SYNs again.
func (f *flow) learnFromTCP(s *tcp.TCPEndpointState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told.Store(true)
	f.sndUna, f.sndNxt = uint32(s.Sender.SndUna), uint32(s.Sender.SndNxt)
	if !f.blank {
		return
	}
	f.maxWindow = max(f.maxWindow, uint32(s.Sender.SndWnd))
	f.agreed.TS, f.agreed.SACKPermitted, f.recent = s.SendTSOk, s.SACKPermitted, s.RecentTS
	f.ours.WS, f.theirs.WS = int(s.Receiver.RcvWndScale), int(s.Sender.SndWndScale)
	f.synced, f.rcvNxt, f.rcvEdge = true, uint32(s.Receiver.RcvNxt), uint32(s.Receiver.RcvAcc)
}

// guarded reports whether a suspect segment is one that a TCP in this state must not get.
func guarded(s *segment, state tcp.EndpointState) bool {
	switch state {
	case tcp.StateEstablished, tcp.StateFinWait1, tcp.StateFinWait2, tcp.StateCloseWait,
		tcp.StateClosing, tcp.StateLastAck:
		return true
	case tcp.StateSynRecv:
		// What acknowledges no SYN of ours, TCP answers with a RST of that number, unless it is a cookie.
		return s.has(header.TCPFlagRst | header.TCPFlagSyn)
	}
	return false // in TIME-WAIT TCP takes no RST, and a new SYN may be right
}

// refuses judges a suspect segment, and reports whether TCP is not to get it. packet is its whole, if there is one.
func (t *taps) refuses(f *flow, s *segment, packet []byte) bool {
	if state := t.state(f.ends); !s.intact() || !guarded(s, state) {
		return false
	}
	if s.has(header.TCPFlagRst) {
		return t.refusesReset(f, s, packet)
	}
	// RFC 5961, section 4.2: "If the SYN bit is set, irrespective of the sequence number, TCP MUST send an ACK (also
	// referred to as challenge ACK) to the remote peer". Section 5.2: "All incoming segments whose ACK value doesn't
	// satisfy the above condition MUST be discarded and an ACK sent back." (U05, U06)
	if s.has(header.TCPFlagSyn) || f.told.Load() {
		t.challenge(f)
	} else {
		t.askTCP(f)
	}
	return true
}

// refusesReset is refuses for a RST.
//
// RFC 5961, section 3.2: "1) If the RST bit is set and the sequence number is outside the current receive window,
// silently drop the segment. 2) If the RST bit is set and the sequence number exactly matches the next expected
// sequence number (RCV.NXT), then TCP MUST reset the connection. 3) If the RST bit is set and the sequence number
// does not exactly match the next expected sequence value, yet is within the current receive window [...], TCP MUST
// send an acknowledgment (challenge ACK)". (U01, U02, U03)
func (t *taps) refusesReset(f *flow, s *segment, packet []byte) bool {
	f.mu.Lock()
	taken := f.taken.Load()
	exact, within := s.seq == taken, s.seq-taken < f.window(taken)
	waits := !exact && within && s.seq == f.coming && packet != nil
	first := waits && f.reset == nil
	if first {
		f.reset, f.resetSeq = bytes.Clone(packet), s.seq
		f.held.Store(true)
	}
	f.mu.Unlock()
	switch {
	case exact:
		return false
	case first:
		time.AfterFunc(resetWait, func() { t.recheckReset(f, true) })
		t.recheckReset(f, false) // TCP may have taken the rest meanwhile
	case waits:
	case within:
		t.challenge(f)
	}
	return true
}

// recheckReset judges a RST that waits once more: when TCP has taken something more, or at the last when it has waited
// for long.
func (t *taps) recheckReset(f *flow, last bool) {
	f.mu.Lock()
	ahead := int32(f.resetSeq - f.taken.Load())
	packet := f.reset
	if packet == nil || ahead > 0 && !last {
		f.mu.Unlock()
		return
	}
	f.reset = nil
	f.held.Store(false)
	f.mu.Unlock()
	switch {
	case ahead == 0:
		go t.deliver(packet, true) // TCP's lock may be held
	case ahead > 0:
		t.challenge(f)
	}
}

// refusesWhole judges a segment as TCP gets it: one that came in fragments, or behind options of IP.
func (t *taps) refusesWhole(from, to tcpip.Address, whole []byte) bool {
	s := segment{tcp: whole}
	if !s.parseTCP(from, to) {
		return false
	}
	f := t.flow(ends{local: s.to, remote: s.from})
	if f == nil {
		return false
	}
	f.mu.Lock()
	suspect := f.suspects(&s)
	f.mu.Unlock()
	return suspect && t.refuses(f, &s, nil)
}
