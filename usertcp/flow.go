package usertcp

import (
	"container/list"
	"math"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A flow is what the tap knows of one connection, from the packets of both directions. Of TCP's own state only that is
// looked at which does not stand in our packets: emss, una and gaps.
type flow struct {
	ends
	blank   bool          // nothing is known of it
	waits   *list.Element // until a Conn claims it. The lock of the taps guards it, and aged
	aged    bool          // TCP had no connection for it a while ago
	mtu     int
	iss     uint32
	dead    atomic.Bool   // nothing is shown any more
	watched atomic.Bool   // something may be shown
	read    atomic.Uint64 // bytes that Read has returned
	emss    atomic.Int32
	una     atomic.Uint32        // SND.UNA of TCP's own
	trip    atomic.Int64         // see RoundTrip
	smooth  atomic.Int64         // its smoothed time alone
	conn    atomic.Pointer[Conn] // whose it is: nil until it is claimed

	gaps gapReport
	last lastPacket
	guard

	showing sync.Mutex // held while bytes are shown
	shown   func(at uint64, data []byte)
	from    uint64 // bytes that Read had returned at ShowAhead

	mu           sync.Mutex
	ours, theirs header.TCPSynOptions // of the SYNs
	agreed       header.TCPSynOptions // what both have

	sndNxt, sndUna uint32
	maxWindow      uint32 // the largest of the peer's

	synced          bool   // irs is known
	irs             uint32 // the peer's initial sequence number
	rcvNxt, rcvEdge uint32 // as our packets say: what is expected next, and where the window ends
	next            uint32 // what is taken to come next in order: rcvNxt, or more
	recent          uint32 // TS.Recent
	fin             bool   // the peer's was seen
	finSeq          uint32
}

// newFlow returns a flow that begins with a SYN of ours.
func newFlow(e ends, mtu int, s *segment) *flow {
	f := blankFlow(e)
	f.blank, f.mtu = false, mtu
	f.iss, f.sndNxt, f.sndUna = s.seq, s.endSeq(), s.seq
	f.una.Store(s.endSeq())
	f.ours = s.syn()
	f.theirs = header.TCPSynOptions{MSS: header.TCPDefaultMSS, WS: -1}
	return f
}

// blankFlow returns one of which nothing is known.
func blankFlow(e ends) *flow {
	f := &flow{ends: e, blank: true}
	f.gaps.delay = repeatDelay
	f.emss.Store(header.TCPDefaultMSS - header.TCPOptionsMaximumSize)
	return f
}

// outbound learns from a packet of ours, and reports whether it acknowledges no more than those before it.
func (f *flow) outbound(s *segment) (repeats bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	repeats = s.ack == f.rcvNxt
	if before(f.sndNxt, s.endSeq()) {
		f.sndNxt = s.endSeq()
	}
	if !s.has(header.TCPFlagAck) || s.has(header.TCPFlagRst) {
		return repeats
	}
	if s.has(header.TCPFlagFin) {
		f.gaps.due.Store(f.agreed.SACKPermitted)
	}
	if s.has(header.TCPFlagSyn) {
		f.agree(s.syn()) // it has nothing that the peer's SYN has not
	}
	if !f.synced {
		// The peer's number is the one that we acknowledge. Its SYN may have been an old one.
		f.synced, f.irs = true, s.ack-1
		f.rcvNxt, f.rcvEdge, f.next, f.coming = s.ack, s.ack, s.ack, s.ack
		f.taken.Store(s.ack)
	}
	if before(f.rcvNxt, s.ack) {
		f.rcvNxt = s.ack
		f.taken.Store(s.ack)
	}
	if s.ack == f.rcvNxt { // not one that others have overtaken
		// The edge that was advertised last, and not the farthest: TCP's own goes back, too, by rounding.
		f.rcvEdge = s.ack + scaled(s, f.agreed, f.ours)
	}
	if before(f.next, f.rcvNxt) {
		f.next = f.rcvNxt
	}
	if o := header.ParseTCPOptions(s.tcp.Options()); o.TS {
		f.stamp = o.TSVal
		if f.agreed.TS {
			f.recent = o.TSEcr
		}
	}
	return repeats
}

// sent returns how many bytes TCP has sent, modulo 2^32, and perhaps our FIN.
func (f *flow) sent() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sndNxt - (f.iss + 1)
}

// agree settles what both SYNs have, and the EMSS that follows. second are the options of the SYN that answers.
func (f *flow) agree(second header.TCPSynOptions) {
	f.agreed = second
	ip := header.IPv4MinimumSize
	if f.remote.Addr().Is6() {
		ip = header.IPv6MinimumSize
	}
	f.emss.Store(int32(max(1, min(int(f.theirs.MSS), f.mtu-ip-header.TCPMinimumSize)-f.optionRoom())))
}

// optionRoom returns the bytes of options that TCP leaves room for in each segment.
func (f *flow) optionRoom() int {
	switch {
	case f.agreed.SACKPermitted && f.agreed.TS:
		return header.TCPOptionsMaximumSize
	case f.agreed.SACKPermitted:
		return 2 + 2 + 4*8 // padding, kind and length, four blocks (RFC 2018)
	case f.agreed.TS:
		return header.TCPOptionTSLength + 2
	}
	return 0
}

// scaled returns the window that a packet grants, whose sender has sent a SYN with these options.
func scaled(s *segment, agreed, syn header.TCPSynOptions) uint32 {
	w := uint32(s.tcp.WindowSize())
	if agreed.WS >= 0 && !s.has(header.TCPFlagSyn) {
		w <<= min(max(syn.WS, 0), header.MaxWndScale)
	}
	return w
}

// grants returns what stands in a segment of the peer's that grants its largest window.
func (f *flow) grants() uint16 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.agreed.WS < 0 {
		return uint16(min(f.maxWindow, math.MaxUint16))
	}
	return uint16(min(f.maxWindow>>min(max(f.theirs.WS, 0), header.MaxWndScale), math.MaxUint16))
}

// show shows what is ahead of order, unless it has its turn by now.
func (f *flow) show(seq uint32, data []byte) {
	f.showing.Lock()
	defer f.showing.Unlock()
	if f.shown == nil || f.dead.Load() {
		return
	}
	// Less than 2^31 lie between the two, and sequence numbers wrap as the difference does.
	read := f.read.Load()
	if ahead := int32(seq - (f.irs + 1 + uint32(read))); ahead > 0 {
		f.shown(read-f.from+uint64(ahead), data)
	}
}

// showTo sets to whom bytes are shown. It returns when nobody else is shown any.
func (f *flow) showTo(shown func(at uint64, data []byte)) {
	f.showing.Lock()
	defer f.showing.Unlock()
	f.shown, f.from = shown, f.read.Load()
	f.watched.Store(shown != nil)
}
