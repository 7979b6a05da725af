package ulp

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
)

// Messages of SMB Direct: [MS-SMBD], section 2.2. All fields are little-endian.
const (
	smbdVersion     = 0x0100
	smbdRequestLen  = 20 // of SMBDirect Negotiate Request
	smbdResponseLen = 32 // of SMBDirect Negotiate Response
	smbdHeaderLen   = 20 // of SMBDirect Data Transfer
	smbdFlags       = 0x0001
	smbdMaxCredits  = 1 << 12
	maxFragmented   = 8 << 10 // bytes of such a message that are kept
)

// A smbDirect is SMB Direct, with SMB2 in it.
type smbDirect struct {
	asked  bool // by a Negotiate Request
	begun  bool // both have negotiated, or it began before
	parts  [2]fragmented
	smb2   smb2
	memory memory
}

// A fragmented is a message of which fragments have come.
type fragmented struct {
	rest uint32 // bytes to come
	head []byte
	next int // where the first request is that was not read yet, 0 for none
}

func beginSMBDirect(private [2]any, _ [2][]byte) (protocol, bool) {
	return &smbDirect{}, is[ulpdata.SMBDirect](private)
}

func (p *smbDirect) access(end int, a *Access) (line, int) { return p.memory.access(end, a) }

func (p *smbDirect) size() int {
	return costRequest*(p.smb2.asked[0].len()+p.smb2.asked[1].len()) + p.memory.size() + cap(p.parts[0].head) + cap(p.parts[1].head)
}

func (p *smbDirect) send(end int, m *Message) (line, int) {
	if !p.begun {
		if l, verdict := p.negotiate(m.Data); verdict > silent {
			return l, verdict
		}
	}
	return p.transfer(end, m)
}

// negotiate reads the two messages that come first.
func (p *smbDirect) negotiate(b []byte) (line, int) {
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	if len(b) < smbdRequestLen || u16(b) > smbdVersion || u16(b[2:]) < smbdVersion {
		return line{}, against
	}
	switch {
	case len(b) == smbdRequestLen && !p.asked && u16(b[4:]) == 0 && u16(b[6:]) > 0:
		p.asked = true
		return line{text: fmt.Sprintf("negotiate request: credits %d, send %d, receive %d, fragmented %d",
			u16(b[6:]), u32(b[8:]), u32(b[12:]), u32(b[16:]))}, agrees
	case len(b) == smbdResponseLen && p.asked && u16(b[6:]) == 0:
		p.begun = true
		l := line{text: fmt.Sprintf("negotiate response: credits %d of %d asked for, read and write %d, send %d, receive %d, fragmented %d",
			u16(b[10:]), u16(b[8:]), u32(b[16:]), u32(b[20:]), u32(b[24:]), u32(b[28:]))}
		if status := u32(b[12:]); status != 0 {
			l.failure = ntStatus(status)
			l.text += ": " + l.failure
		}
		return l, agrees
	}
	return line{}, against
}

// transfer reads a Data Transfer.
func (p *smbDirect) transfer(end int, m *Message) (line, int) {
	b, u16, u32 := m.Data, binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	if len(b) < smbdHeaderLen {
		return line{}, against
	}
	asked, granted, flags := u16(b), u16(b[2:]), u16(b[4:])
	remaining, offset, length := u32(b[8:]), u32(b[12:]), u32(b[16:])
	room := uint64(offset)+uint64(length) <= uint64(m.Length)
	if asked == 0 || asked > smbdMaxCredits || granted > smbdMaxCredits || flags&^smbdFlags != 0 || u16(b[6:]) != 0 || !room ||
		length > 0 && (offset < smbdHeaderLen || offset%8 != 0) || length == 0 && offset != 0 {
		return line{}, against
	}
	p.begun = true
	if length == 0 {
		return line{text: fmt.Sprintf("credits: %d granted, %d asked for", granted, asked)}, fits
	}
	first := uint64(offset)
	payload := b[min(first, uint64(len(b))):min(first+uint64(length), uint64(len(b)))]
	return p.fragment(end, m.n, payload, length, remaining)
}

// fragment reads a message, or a part of it, of which some bytes remain.
func (p *smbDirect) fragment(end, number int, b []byte, length, remaining uint32) (line, int) {
	f := &p.parts[end]
	more := f.rest
	f.rest = remaining
	if more == 0 {
		l, next, verdict := p.smb2.read(end, number, b, &p.memory)
		f.next, f.head = next, append(f.head[:0], b[:min(len(b), maxFragmented)]...)
		return l, verdict
	}
	if uint64(more) != uint64(length)+uint64(remaining) {
		return line{}, against
	}
	f.head = append(f.head, b[:min(len(b), maxFragmented-len(f.head))]...)
	l := line{text: fmt.Sprintf("%s of a fragmented message, and %d to come", wording.Bytes(length), remaining)}
	if remaining == 0 && 0 < f.next && f.next < len(f.head) {
		if rest, _, verdict := p.smb2.read(end, number, f.head[f.next:], &p.memory); verdict > silent {
			rest.text = l.text + ": " + rest.text
			return rest, fits
		}
	}
	return l, fits
}
