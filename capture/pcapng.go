package capture

import (
	"encoding/binary"
	"time"
)

// Types of pcapng blocks, draft-ietf-opsawg-pcapng, section 11.1.
const (
	blockInterface = 0x00000001
	blockPacket    = 0x00000002 // obsolete
	blockSimple    = 0x00000003
	blockEnhanced  = 0x00000006
	blockJournal   = 0x00000009 // systemd; Wireshark numbers it like a packet
	blockCustom    = 0x00000bad // as above
	blockCustomOwn = 0x40000bad // as above, not to be copied
	blockSection   = 0x0a0d0d0a // the same in either byte order
)

// Bytes of and in blocks.
const (
	blockLead  = 8  // type and total length
	blockTail  = 4  // total length again
	sectionLen = 28 // of a Section Header Block without options
	orderMagic = 0x1a2b3c4d

	unknownDrops = 0xffff // in an obsolete packet's block

	// maxBlock is the most bytes of a block that is looked at as a whole: a packet
	// with room for its options.
	maxBlock = maxCaptured + 64<<10

	// maxInterfaces bounds what a section can make us hold.
	maxInterfaces = 1 << 16
)

// pcapng is a capture file of blocks, draft-ietf-opsawg-pcapng.
type pcapng struct {
	order binary.ByteOrder
	ifs   []ifDesc // of the section
}

// newPcapng reads the first Section Header Block.
func newPcapng(w *window) (format, error) {
	f := new(pcapng)
	return f, f.section(w)
}

// next reads blocks until there is a packet.
func (f *pcapng) next(w *window, p *Packet) error {
	for {
		b, err := w.peek(blockLead)
		if err != nil {
			return err
		}
		if binary.BigEndian.Uint32(b) == blockSection {
			err = f.section(w)
		} else if found, bad := f.block(w, p); found || bad != nil {
			return bad
		}
		if err != nil {
			return err
		}
	}
}

// block reads a block that does not begin a section. found reports a packet.
func (f *pcapng) block(w *window, p *Packet) (found bool, err error) {
	b, err := w.peek(blockLead)
	if err != nil {
		return false, err
	}
	kind, size := f.order.Uint32(b), f.order.Uint32(b[4:])
	switch kind {
	case blockInterface, blockPacket, blockSimple, blockEnhanced:
		return f.known(w, p, kind, size)
	}
	if size < blockLead+blockTail {
		return false, damagef("a block of type %#x and %d bytes", kind, size)
	}
	if err := w.skip(padded(size)); err != nil {
		return false, err
	}
	switch kind {
	case blockJournal, blockCustom, blockCustomOwn:
		p.Number++
	}
	return false, nil
}

// padded is how many bytes a block takes in a file: total lengths that are not a
// multiple of four are wrong, and do exist.
func padded(size uint32) int64 { return (int64(size) + 3) &^ 3 }

// known reads a block of an interface or a packet.
func (f *pcapng) known(w *window, p *Packet, kind, size uint32) (found bool, err error) {
	if size < blockLead+blockTail || size > maxBlock {
		return false, damagef("a block of type %#x and %d bytes, want %d to %d",
			kind, size, blockLead+blockTail, maxBlock)
	}
	n := int(padded(size))
	b, err := w.peek(n)
	if err != nil {
		return false, unexpected(err)
	}
	if again := f.order.Uint32(b[n-blockTail:]); again != size {
		return false, damagef("a block whose length is %d at its beginning and %d at its end", size, again)
	}
	if body := b[blockLead : n-blockTail]; kind == blockInterface {
		err = f.describe(body)
	} else {
		err = f.packet(p, kind, body)
	}
	if err == nil {
		w.consume(n)
	}
	return kind != blockInterface, err
}

// section reads a Section Header Block (section 4.1): byte order and interfaces
// begin anew.
func (f *pcapng) section(w *window) error {
	b, err := w.peek(sectionLen)
	if err != nil {
		return unexpected(err)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if binary.BigEndian.Uint32(b[blockLead:]) == orderMagic {
		order = binary.BigEndian
	} else if order.Uint32(b[blockLead:]) != orderMagic {
		return damagef("a pcapng section whose byte order is % x", b[blockLead:blockLead+4])
	}
	if major := order.Uint16(b[12:]); major != 1 {
		return damagef("a pcapng section of version %d.%d, want 1.0", major, order.Uint16(b[14:]))
	}
	size := order.Uint32(b[4:])
	if size < sectionLen {
		return damagef("a Section Header Block of %d bytes, want %d at least", size, sectionLen)
	}
	f.order, f.ifs = order, f.ifs[:0]
	return w.skip(padded(size))
}

// packet reads the body of a block with a packet (sections 4.3, 4.4, appendix A).
func (f *pcapng) packet(p *Packet, kind uint32, b []byte) error {
	if kind == blockSimple {
		return f.simple(p, b)
	}
	if len(b) < 20 {
		return damagef("a packet's block of %d bytes, want 20 at least", len(b))
	}
	id := f.order.Uint32(b)
	p.Dropped = 0
	if kind == blockPacket {
		id = uint32(f.order.Uint16(b))
		if n := f.order.Uint16(b[2:]); n != unknownDrops {
			p.Dropped = uint64(n)
		}
	}
	i, err := f.ifDesc(id)
	if err != nil {
		return err
	}
	captured := f.order.Uint32(b[12:])
	if captured > maxCaptured || int(captured) > len(b)-20 {
		return damagef("a packet of %d captured bytes in a block with room for %d", captured, len(b)-20)
	}
	p.Number++
	p.Time = i.time(uint64(f.order.Uint32(b[4:]))<<32 | uint64(f.order.Uint32(b[8:])))
	p.Link, p.Data, p.OrigLen = i.link, b[20:20+captured], origLen(f.order.Uint32(b[16:]))
	if kind == blockEnhanced {
		p.Dropped = f.drops(b[min(len(b), 20+int(captured+3)&^3):])
	}
	return nil
}

// drops looks for epb_dropcount (section 4.3) in the options of a packet. Options that are damaged have none.
func (f *pcapng) drops(b []byte) uint64 {
	for len(b) >= 4 {
		code, n := f.order.Uint16(b), int(f.order.Uint16(b[2:]))
		switch {
		case code == optEnd || n > len(b)-4:
			return 0
		case code == optDropCount && n == 8:
			return f.order.Uint64(b[4:])
		}
		b = b[min(len(b), 4+(n+3)&^3):]
	}
	return 0
}

// simple reads the body of a Simple Packet Block, which is of the first interface
// and as long as that one's snap length leaves it.
func (f *pcapng) simple(p *Packet, b []byte) error {
	i, err := f.ifDesc(0)
	if err != nil {
		return err
	}
	if len(b) < 4 {
		return damagef("a Simple Packet Block of %d bytes", len(b))
	}
	orig := f.order.Uint32(b)
	captured := orig
	if i.snapLen > 0 {
		captured = min(orig, i.snapLen)
	}
	if int64(captured) > int64(len(b)-4) {
		return damagef("a packet of %d captured bytes in a block with room for %d", captured, len(b)-4)
	}
	p.Number++
	p.Time, p.Link, p.Data, p.OrigLen = time.Time{}, i.link, b[4:4+captured], origLen(orig)
	p.Dropped = 0
	return nil
}
