package usertcp

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A gapReport completes our acknowledgements after our FIN. gVisor's TCP goes on to note what it holds ahead of order
// then, but says so in ESTABLISHED alone. A peer that goes on sending would learn of each loss by a time-out, and of
// those there are as many as losses. What is reported is TCP's own account, so that it never takes it back. TCP answers
// a segment ahead of order before it tells what it holds with it: so an acknowledgement that repeats the last waits for
// that.
type gapReport struct {
	due atomic.Bool // our FIN was sent, and both SYNs permit the option

	mu    sync.Mutex
	held  []header.SACKBlock // when TCP had processed its last segment, the block that changed last first
	acked uint32             // what our last acknowledgement said
	since []byte             // that one, if it was sent since TCP processed a segment, or else empty
	waits []byte             // one that repeats it, and is not sent yet: empty if none
	timer *time.Timer        // sends it where TCP has processed no segment: it opens the window, for one
	delay time.Duration      // when the timer does so
}

// repeatDelay is how long an acknowledgement waits that answers no segment, in front of which TCP holds what it held.
const repeatDelay = time.Millisecond

// acknowledging returns an acknowledgement of ours as it is to be sent, or nil, if it has to wait: send gets it later.
func (r *gapReport) acknowledging(packet []byte, ack uint32, repeats bool, send func([]byte)) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if repeats {
		r.wait(packet, send)
		return nil
	}
	r.acked, r.waits = ack, r.waits[:0]
	r.since = append(r.since[:0], packet...)
	return withSACK(packet, r.held)
}

// wait keeps an acknowledgement until TCP has processed the segment that it answers.
func (r *gapReport) wait(packet []byte, send func([]byte)) {
	r.waits = append(r.waits[:0], packet...)
	if r.timer == nil {
		r.timer = time.AfterFunc(r.delay, func() { r.repeat(send) })
		return
	}
	r.timer.Reset(r.delay)
}

// repeat sends the acknowledgement that waits, if there still is one.
func (r *gapReport) repeat(send func([]byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waits) > 0 {
		send(withSACK(bytes.Clone(r.waits), r.held))
		r.waits = r.waits[:0]
	}
}

// processed takes what TCP holds once it has processed a segment, and what it expects next. It returns the
// acknowledgement that has waited for that, or nil.
//
// RFC 2018, section 4: "The first SACK block (i.e., the one immediately following the kind and length fields in the
// option) MUST specify the contiguous block of data containing the segment which triggered this ACK".
func (r *gapReport) processed(held []header.SACKBlock, next uint32) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := !slices.Equal(r.held, held)
	r.held = append(r.held[:0], held...)
	answer := r.waits
	if len(answer) == 0 && changed && len(held) > 0 && r.acked == next {
		answer = r.since // it told of bytes in front of the segment, and not of the segment
	}
	answer = bytes.Clone(answer)
	r.waits, r.since = r.waits[:0], r.since[:0]
	if len(answer) == 0 {
		return nil
	}
	return withSACK(answer, held)
}

// withSACK appends an option to an acknowledgement without payload: as many of the blocks as there is room for.
//
// RFC 2018, section 4: "If sent at all, SACK options SHOULD be included in all ACKs which do not ACK the highest
// sequence number in the data receiver's queue." Section 3: "A SACK option that specifies n blocks will have a length
// of 8*n+2 bytes".
func withSACK(packet []byte, held []header.SACKBlock) []byte {
	s, ok := parseSegment(packet)
	if !ok || len(s.payload) > 0 || len(packet) != ipLength(&s)+len(s.tcp) ||
		len(header.ParseTCPOptions(s.tcp.Options()).SACKBlocks) > 0 {
		return packet
	}
	held = slices.DeleteFunc(slices.Clone(held), func(b header.SACKBlock) bool {
		return !before(s.ack,
			uint32(b.Start))
	})
	option := [header.TCPOptionsMaximumSize]byte{header.TCPOptionNOP, header.TCPOptionNOP}
	n := header.EncodeSACKBlocks(held, option[2:max(4, header.TCPOptionsMaximumSize-len(s.tcp.Options()))])
	if n == 0 {
		return packet
	}
	packet = append(packet, option[:2+n]...)
	lengthen(packet, len(s.tcp)+2+n)
	return packet
}

// ipLength returns the bytes of the IP header in front of a segment.
func ipLength(s *segment) int {
	if s.to.Addr().Is6() {
		return header.IPv6MinimumSize
	}
	return header.IPv4MinimumSize
}

// lengthen has the headers of a packet say that it has so many bytes of TCP, which are all its header.
func lengthen(packet []byte, tcpLength int) {
	var from, to tcpip.Address
	tcp := header.TCP(packet[len(packet)-tcpLength:])
	if header.IPVersion(packet) == header.IPv4Version {
		ip := header.IPv4(packet)
		ip.SetTotalLength(uint16(len(packet)))
		ip.SetChecksum(0)
		ip.SetChecksum(^ip.CalculateChecksum())
		from, to = ip.SourceAddress(), ip.DestinationAddress()
	} else {
		ip := header.IPv6(packet)
		ip.SetPayloadLength(uint16(tcpLength))
		from, to = ip.SourceAddress(), ip.DestinationAddress()
	}
	tcp[header.TCPDataOffset] = byte(tcpLength/4) << 4
	binary.BigEndian.PutUint16(tcp[header.TCPChecksumOffset:], 0)
	tcp.SetChecksum(^checksum.Checksum(tcp, header.PseudoHeaderChecksum(header.TCPProtocolNumber,
		from, to, uint16(tcpLength))))
}
