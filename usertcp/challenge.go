package usertcp

import (
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Challenge ACKs of a connection, where its Config does not say.
//
// RFC 5961, section 7: "For example, in any 5 second window, no more than 10 challenge ACKs should be sent."
const (
	challengeACKs   = 10
	challengePeriod = 5 * time.Second
)

// A throttle bounds the challenge ACKs of each connection. A bound for all of them together would tell somebody who has
// one connection what happens on the others.
//
// RFC 5961, section 7: "An implementation SHOULD include an ACK throttling mechanism to be conservative." (U07)
type throttle struct {
	most   int
	period time.Duration
}

// permits takes note of a challenge ACK, or reports false if there were too many. past are those before.
func (h throttle) permits(past *[]time.Time) bool {
	now := time.Now()
	if p := *past; len(p) < h.most {
		*past = append(p, now)
		return true
	} else if now.Sub(p[0]) < h.period {
		return false
	}
	copy(*past, (*past)[1:])
	(*past)[h.most-1] = now
	return true
}

// challenge asks the peer whether it meant what TCP does not get. Who has no such connection answers with a RST of the
// number that we expect.
func (t *taps) challenge(f *flow) {
	f.mu.Lock()
	var packet []byte
	if t.throttle.permits(&f.challenges) {
		packet = f.challengeACK()
	}
	f.mu.Unlock()
	if packet != nil {
		t.send(packet)
	}
}

// askTCP has TCP itself answer, and tell of its numbers: until then it alone is sure of what it has sent.
func (t *taps) askTCP(f *flow) {
	f.mu.Lock()
	packet := f.oldAck()
	f.mu.Unlock()
	t.deliver(packet, true)
}

// challengeACK returns an acknowledgement of what TCP has taken.
//
// RFC 5961, section 3.2: "<SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>".
func (f *flow) challengeACK() []byte {
	taken := f.taken.Load()
	window := f.window(taken)
	if f.agreed.WS >= 0 {
		window >>= min(max(f.ours.WS, 0), header.MaxWndScale)
	}
	fields := header.TCPFields{SeqNum: f.sndNxt, AckNum: taken, WindowSize: uint16(min(window, 1<<16-1))}
	var stamp []byte
	if f.agreed.TS && f.stamp != 0 {
		stamp = timestamp(f.stamp, f.recent)
	}
	return acknowledgement(f.local, f.remote, fields, stamp)
}

// oldAck returns an old acknowledgement of the peer's. TCP drops it, and answers with one of its own, at most twice a
// second.
func (f *flow) oldAck() []byte {
	fields := header.TCPFields{SeqNum: f.taken.Load() - 1, AckNum: f.sndNxt,
		WindowSize: uint16(min(f.maxWindow, 1<<16-1))}
	return acknowledgement(f.remote, f.local, fields, nil)
}

// timestamp returns the option, with what goes in front of it.
func timestamp(value, echo uint32) []byte {
	option := make([]byte, 2+header.TCPOptionTSLength)
	option[0], option[1] = header.TCPOptionNOP, header.TCPOptionNOP
	header.EncodeTSOption(value, echo, option[2:])
	return option
}

// acknowledgement returns the packet of an ACK without data.
func acknowledgement(from, to netip.AddrPort, fields header.TCPFields, options []byte) []byte {
	src, dst := tcpip.AddrFromSlice(from.Addr().AsSlice()), tcpip.AddrFromSlice(to.Addr().AsSlice())
	size := header.TCPMinimumSize + len(options)
	var packet []byte
	if to.Addr().Is4() {
		packet = make([]byte, header.IPv4MinimumSize+size)
		header.IPv4(packet).Encode(&header.IPv4Fields{
			TTL: 64, Flags: header.IPv4FlagDontFragment, Protocol: uint8(header.TCPProtocolNumber),
			SrcAddr: src, DstAddr: dst})
	} else {
		packet = make([]byte, header.IPv6MinimumSize+size)
		header.IPv6(packet).Encode(&header.IPv6Fields{
			HopLimit: 64, TransportProtocol: header.TCPProtocolNumber, SrcAddr: src, DstAddr: dst})
	}
	segment := header.TCP(packet[len(packet)-size:])
	fields.SrcPort, fields.DstPort, fields.Flags, fields.DataOffset = from.Port(), to.Port(),
		header.TCPFlagAck, uint8(size)
	segment.Encode(&fields)
	copy(segment[header.TCPMinimumSize:], options)
	lengthen(packet, size)
	return packet
}
