package capture

import (
	"encoding/binary"
	"strings"
)

// Flags are the control bits of a TCP header (RFC 9293, section 3.1).
type Flags uint8

// The control bits.
const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// Has reports whether all of the given bits are set.
func (f Flags) Has(bits Flags) bool { return f&bits == bits }

// String lists the bits that are set, as in "SYN,ACK".
func (f Flags) String() string {
	var set []string
	for i, name := range [...]string{"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"} {
		if f&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return strings.Join(set, ",")
}

// A tcpHeader is what is known of a packet when its headers have been read.
type tcpHeader struct {
	tuple    tuple
	swapped  bool // the source is b of the tuple
	seq, ack uint32
	flags    Flags
	window   uint16
	options  []byte
	payload  []byte // what was captured of it
	length   int    // of the payload in bytes, as sent
}

// parse reads the headers of a packet down to TCP's.
func (h *tcpHeader) parse(p *Packet) Skip {
	d, why := p.datagram(onlyTCP)
	if why != 0 {
		return why
	}
	return h.tcp(&d)
}

// tcp reads a header of RFC 9293, section 3.1. Options may be cut off.
func (h *tcpHeader) tcp(d *datagram) Skip {
	b := d.segment
	if d.length < tcpLen {
		return SkipMalformed
	}
	if len(b) < tcpLen {
		return SkipShort
	}
	head := int(b[12]>>4) * 4
	if head < tcpLen || head > d.length {
		return SkipMalformed
	}
	h.tuple = d.tuple
	h.tuple.setPorts(binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]))
	h.swapped = h.tuple.order()
	h.seq, h.ack = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	h.flags, h.window = Flags(b[13]), binary.BigEndian.Uint16(b[14:])
	captured := min(head, len(b))
	h.options, h.payload, h.length = b[tcpLen:captured], b[captured:], d.length-head
	return 0
}

// Kinds of TCP options.
const (
	optionEnd           = 0
	optionNop           = 1
	optionMSS           = 2 // RFC 9293, section 3.7.1
	optionWindowScale   = 3 // RFC 7323, section 2
	optionSACKPermitted = 4 // RFC 2018, section 2
	optionTimestamps    = 8 // RFC 7323, section 3
)

// options calls found for each option that is whole.
func options(b []byte, found func(kind byte, value []byte)) {
	for len(b) > 0 && b[0] != optionEnd {
		if b[0] == optionNop {
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return
		}
		found(b[0], b[2:b[1]])
		b = b[b[1]:]
	}
}
