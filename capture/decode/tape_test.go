package decode_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
)

// A tape is a capture of packets that are made one by one, as no end of TCP would always send them. Their
// sequence numbers follow each other, and each acknowledges all that the other end has sent.
type tape struct {
	file bytes.Buffer
	now  time.Time
	seq  [2]uint32
	ends [2]netip.AddrPort
	snap int                    // bytes of a packet that are captured, if not 0
	wrap func(ip []byte) []byte // what the link layer makes of a packet of IP
	mss  int                    // of the SYNs, if not 0
}

// newTape has nothing but the file's header.
func newTape(link capture.LinkType) *tape {
	p := &tape{now: start, seq: [2]uint32{1000, 0xfffffff0}, ends: [2]netip.AddrPort{client, server}}
	p.file.Write(pcapHeader(link))
	return p
}

// pcapHeader is that of a file.
func pcapHeader(link capture.LinkType) []byte {
	le := binary.LittleEndian
	b := append(le.AppendUint32(nil, 0xa1b2c3d4), 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	return le.AppendUint32(le.AppendUint32(b, 65535), uint32(link))
}

// opened is a tape with the handshake of a connection.
func opened() *tape {
	p := newTape(capture.LinkRaw)
	p.open()
	return p
}

func (p *tape) open() {
	p.packet(fw, capture.SYN, nil)
	p.packet(bw, capture.SYN|capture.ACK, nil)
	p.packet(fw, capture.ACK, nil)
}

// packet adds a packet, a millisecond after the one before.
func (p *tape) packet(d capture.Dir, flags capture.Flags, payload []byte) {
	p.at(d, flags, p.seq[d], p.seq[d.Peer()], payload)
	p.seq[d] += uint32(len(payload))
	if flags&(capture.SYN|capture.FIN) != 0 {
		p.seq[d]++
	}
}

// data adds a segment.
func (p *tape) data(d capture.Dir, payload []byte) { p.packet(d, capture.ACK|capture.PSH, payload) }

// at adds a packet with any numbers.
func (p *tape) at(d capture.Dir, flags capture.Flags, seq, ack uint32, payload []byte) {
	p.now = p.now.Add(time.Millisecond)
	be := binary.BigEndian
	tcp := be.AppendUint16(be.AppendUint16(nil, p.ends[d].Port()), p.ends[d.Peer()].Port())
	tcp = be.AppendUint32(tcp, seq)
	if !flags.Has(capture.ACK) {
		ack = 0
	}
	tcp = append(be.AppendUint32(tcp, ack), 0x50, byte(flags), 0xff, 0xff, 0, 0, 0, 0)
	if p.mss > 0 && flags.Has(capture.SYN) {
		tcp[12] = 0x60
		tcp = be.AppendUint16(append(tcp, 2, 4), uint16(p.mss))
	}
	p.write(ipv4Between(p.ends, d, 6, append(tcp, payload...)))
}

// ipv4 puts a header of IP in front of a packet of one of the ends.
func ipv4(d capture.Dir, proto byte, b []byte) []byte {
	return ipv4Between([2]netip.AddrPort{client, server}, d, proto, b)
}

func ipv4Between(ends [2]netip.AddrPort, d capture.Dir, proto byte, b []byte) []byte {
	ip := binary.BigEndian.AppendUint16([]byte{0x45, 0}, uint16(20+len(b)))
	ip = append(ip, 0, 0, 0x40, 0, 64, proto, 0, 0)
	return append(append(append(ip, ends[d].Addr().AsSlice()...), ends[d.Peer()].Addr().AsSlice()...), b...)
}

// write adds a packet as it is.
func (p *tape) write(b []byte) {
	if p.wrap != nil {
		b = p.wrap(b)
	}
	n := len(b)
	if p.snap > 0 {
		n = min(n, p.snap)
	}
	le := binary.LittleEndian
	r := le.AppendUint32(nil, uint32(p.now.Unix()))
	r = le.AppendUint32(r, uint32(p.now.Nanosecond()/1000))
	r = le.AppendUint32(le.AppendUint32(r, uint32(n)), uint32(len(b)))
	p.file.Write(append(r, b[:n]...))
}

// decoded is what is found in the tape.
func (p *tape) decoded(t *testing.T) *record {
	t.Helper()
	return run(t, p.file.Bytes())
}
