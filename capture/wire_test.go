package capture_test

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/goiwarp/iwarp/capture"
)

// A wire makes raw IPv4 packets of one connection, with the sequence numbers that
// the test wants.
type wire struct {
	ends   [2]netip.AddrPort
	isn    [2]uint32
	number uint64
	at     time.Time
}

func newWire() *wire {
	return &wire{ends: [2]netip.AddrPort{client(40000), server}, isn: [2]uint32{1000, 5000}, at: epoch}
}

// packet makes a packet from stream offset at (-1: SYN), which acknowledges what
// lies before stream offset ack of the other direction.
func (w *wire) packet(d capture.Dir, flags capture.Flags, at, ack int64, payload string,
	options ...byte) *capture.Packet {
	ip := make([]byte, 40, 40+len(options)+len(payload))
	from, to := w.ends[d], w.ends[d.Peer()]
	ip[0], ip[9] = 0x45, 6
	binary.BigEndian.PutUint16(ip[2:], uint16(40+len(options)+len(payload)))
	copy(ip[12:], from.Addr().AsSlice())
	copy(ip[16:], to.Addr().AsSlice())
	tcp := ip[20:]
	binary.BigEndian.PutUint16(tcp, from.Port())
	binary.BigEndian.PutUint16(tcp[2:], to.Port())
	binary.BigEndian.PutUint32(tcp[4:], w.isn[d]+1+uint32(at))
	if flags.Has(capture.ACK) {
		binary.BigEndian.PutUint32(tcp[8:], w.isn[d.Peer()]+1+uint32(ack))
	}
	tcp[12], tcp[13] = byte(20+len(options))<<2, byte(flags)
	binary.BigEndian.PutUint16(tcp[14:], 0xffff)
	w.number++
	w.at = w.at.Add(time.Millisecond)
	data := append(append(ip, options...), payload...)
	return &capture.Packet{Number: w.number, Time: w.at, Link: capture.LinkRaw, Data: data, OrigLen: len(data)}
}

// handshake makes the three packets of one.
func (w *wire) handshake() []*capture.Packet {
	return []*capture.Packet{
		w.packet(forth, capture.SYN, -1, 0, "", 2, 4, 0x05, 0xa0, 4, 2, 1, 3, 3, 7, 0, 0),
		w.packet(back, capture.SYN|capture.ACK, -1, 0, "", 2, 4, 0x23, 0x00),
		w.packet(forth, capture.ACK, 0, 0, ""),
	}
}

// data makes a segment.
func (w *wire) data(d capture.Dir, at, ack int64, payload string) *capture.Packet {
	return w.packet(d, capture.ACK|capture.PSH, at, ack, payload)
}

// ack makes a pure acknowledgment of a direction's bytes before an offset.
func (w *wire) ack(of capture.Dir, at, ack int64) *capture.Packet {
	return w.packet(of.Peer(), capture.ACK, at, ack, "")
}

// cut takes bytes off the end of a packet, as a snap length does.
func cut(p *capture.Packet, n int) *capture.Packet {
	p.Data = p.Data[:len(p.Data)-n]
	return p
}

const forth, back = capture.Forward, capture.Backward
