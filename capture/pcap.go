package capture

import (
	"encoding/binary"
	"time"
)

// Lengths in bytes of what pcap puts in front of the file and of each packet.
const (
	pcapHeaderLen = 24
	pcapRecordLen = 16
)

// pcap is a classic capture file, draft-ietf-opsawg-pcap.
type pcap struct {
	order binary.ByteOrder
	tick  time.Duration // of the second part of a time
	link  LinkType
}

// newPcap reads the file's header, whose first bytes have told order and tick.
func newPcap(w *window, order binary.ByteOrder, tick time.Duration) (format, error) {
	b, err := w.peek(pcapHeaderLen)
	if err != nil {
		return nil, err
	}
	if major := order.Uint16(b[4:]); major != 2 {
		return nil, damagef("pcap of version %d.%d, want 2.4", major, order.Uint16(b[6:]))
	}
	// The upper half of the field is about a frame check sequence after the packet,
	// which is past what IP says is its length.
	f := &pcap{order: order, tick: tick, link: LinkType(order.Uint32(b[20:]))}
	w.consume(pcapHeaderLen)
	return f, nil
}

func (f *pcap) next(w *window, p *Packet) error {
	b, err := w.peek(pcapRecordLen)
	if err != nil {
		return err
	}
	sec, part := f.order.Uint32(b), f.order.Uint32(b[4:])
	captured, orig := f.order.Uint32(b[8:]), f.order.Uint32(b[12:])
	if captured > maxCaptured {
		return tooLong(captured)
	}
	if f.fileHeader(b) {
		return damagef("another pcap file begins here: mergecap joins captures, in order of time")
	}
	size := pcapRecordLen + int(captured)
	if b, err = w.peek(size); err != nil {
		return unexpected(err)
	}
	w.consume(size)
	p.Number++
	p.Time = time.Unix(int64(sec), int64(part)*int64(f.tick)).UTC()
	p.Link, p.Data, p.OrigLen = f.link, b[pcapRecordLen:], origLen(orig)
	return nil
}

// fileHeader reports whether a packet's header is in fact that of another file, of version
// 2.4: files were appended to each other.
func (f *pcap) fileHeader(b []byte) bool {
	magic := f.order.Uint32(b)
	version := f.order.Uint16(b[4:]) == 2 && f.order.Uint16(b[6:]) == 4
	return version && (magic == magicMicro || magic == magicNano) && [8]byte(b[8:]) == [8]byte{}
}

func tooLong(captured uint32) error {
	return damagef("a packet of %d captured bytes, more than %d", captured, maxCaptured)
}

// origLen is the length of a packet on the wire as an int of any size; a longer
// packet does not exist.
func origLen(n uint32) int { return int(min(n, 1<<30)) }
