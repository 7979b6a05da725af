package usertcp

import (
	"container/list"
	"net/netip"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// ends are the ends of a connection.
type ends struct{ local, remote netip.AddrPort }

// taps see all packets between the stack and its link, and have a flow for each TCP connection.
//
// The locks here are the innermost: outbound and probe are called with TCP's held. Bytes are shown with none but the
// flow's showing.
type taps struct {
	buffers  packets
	send     func(packet []byte) // the link's
	deliver  func(packet []byte, seen bool)
	state    func(ends) tcp.EndpointState // of TCP's own connection; StateClose if there is none
	throttle throttle
	mtu      int
	silent   atomic.Bool // connections that have ended in order are not reset

	mu        sync.RWMutex
	flows     map[ends]*flow
	unclaimed list.List // those of flows that wait to be claimed, the oldest first
	asked     [256]asked
	room      int  // as many may wait before those of no connection are looked for
	most      int  // flows since the map was made
	sweeping  bool // a timer runs
}

// asked are the options of a peer's SYN, until our answer to it begins a flow. A SYN leaves no other state.
type asked struct {
	ends
	options header.TCPSynOptions
}

func newTaps(l Link, mtu int) *taps {
	return &taps{
		send: l.Send, mtu: mtu, flows: make(map[ends]*flow), room: unclaimedFlows,
		throttle: throttle{challengeACKs, challengePeriod},
		state:    func(ends) tcp.EndpointState { return tcp.StateClose },
	}
}

func (t *taps) flow(e ends) *flow {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.flows[e]
}

// claim returns the flow of a connection that is established: a blank one if it was forgotten.
func (t *taps) claim(e ends) *flow {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flows[e]
	if f == nil || f.waits == nil {
		f = blankFlow(e)
		t.flows[e] = f
	}
	t.waitNoMore(f)
	return f
}

// waitNoMore takes a flow out of those that wait. In their list it would keep the memory of its connection after that
// has ended.
func (t *taps) waitNoMore(f *flow) {
	if f.waits != nil {
		t.unclaimed.Remove(f.waits)
		f.waits = nil
	}
}

// forget ends a flow whose connection TCP has none of any more.
func (t *taps) forget(f *flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flows[f.ends] == f {
		t.drop(f)
	}
}

// startFlow starts a flow by a SYN of ours. One that was there is another's, except for a SYN that is sent again.
func (t *taps) startFlow(e ends, s *segment) *flow {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.flows[e]; f != nil && !f.blank && f.iss == s.seq {
		return f
	}
	f := newFlow(e, t.mtu, s)
	if a := &t.asked[slot(e)]; a.ends == e {
		f.theirs = a.options
		*a = asked{}
	}
	t.wait(f)
	return f
}

// slot is where a SYN is noted: others take its place.
func slot(e ends) int {
	a := e.remote.Addr().As16()
	h := uint(e.remote.Port()) + uint(e.local.Port())*31
	for _, b := range a {
		h = h*31 + uint(b)
	}
	return int(h % 256)
}

// note remembers the options of a peer's SYN.
func (t *taps) note(e ends, o header.TCPSynOptions) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[slot(e)] = asked{e, o}
}

// outbound sees a packet of ours, and returns what is to be sent in its place: nil for nothing.
func (t *taps) outbound(packet []byte) []byte {
	s, ok := parseSegment(packet)
	if !ok {
		return packet
	}
	e := ends{local: s.from, remote: s.to}
	if s.has(header.TCPFlagSyn) {
		t.startFlow(e, &s).outbound(&s)
		return packet
	}
	f := t.flow(e)
	if f == nil {
		return packet
	}
	repeats := f.outbound(&s)
	f.last.outbound(packet, &s)
	switch {
	case s.has(header.TCPFlagRst) && t.silent.Load() && f.isOver():
		return nil
	case f.gaps.due.Load() && s.flags == header.TCPFlagAck && len(s.payload) == 0:
		return f.gaps.acknowledging(packet, s.ack, repeats, t.send)
	}
	return packet
}

// inbound sees a packet of a peer's ahead of TCP, and shows what is ahead of others.
func (t *taps) inbound(packet []byte) verdict {
	s, ok := parseSegment(packet)
	if !ok {
		return unread
	}
	e := ends{local: s.to, remote: s.from}
	f := t.flow(e)
	if s.has(header.TCPFlagSyn) && !s.has(header.TCPFlagAck) && s.intact() {
		t.note(e, s.syn())
	}
	if f == nil {
		return notLookedAt
	}
	v := f.inbound(&s)
	switch {
	case v == ahead:
		f.show(s.seq, s.payload)
	case v == suspect && t.refuses(f, &s, packet):
		return refused
	}
	return v
}

// probe is called by TCP after each segment that it has processed, with its lock held.
func (t *taps) probe(s *tcp.TCPEndpointState) {
	f := t.flow(ends{
		local:  addrPort(tcpip.FullAddress{Addr: s.ID.LocalAddress, Port: s.ID.LocalPort}),
		remote: addrPort(tcpip.FullAddress{Addr: s.ID.RemoteAddress, Port: s.ID.RemotePort}),
	})
	if f == nil {
		return
	}
	if s.Sender.MaxPayloadSize > 0 {
		f.emss.Store(int32(s.Sender.MaxPayloadSize))
	}
	if r := &s.Sender.RTTState; r.SRTTInited {
		f.trip.Store(int64(r.SRTT + 4*r.RTTVar))
		f.smooth.Store(int64(r.SRTT))
	}
	f.una.Store(uint32(s.Sender.SndUna))
	f.taken.Store(uint32(s.Receiver.RcvNxt))
	if !f.told.Load() {
		f.learnFromTCP(s)
	}
	if f.held.Load() {
		t.recheckReset(f, false)
	}
	if f.gaps.due.Load() {
		if ack := f.gaps.processed(s.SACK.Blocks, uint32(s.Receiver.RcvNxt)); ack != nil {
			t.send(ack)
		}
	}
	if c := f.conn.Load(); c != nil {
		c.updateEnd()
		if jammed(&s.Sender) {
			go c.unjam() // TCP's lock is held
		}
	}
}
