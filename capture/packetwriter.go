package capture

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// A PacketWriter writes packets to a pcapng file, with times in nanoseconds and comments. Each kind of link has an
// interface in the file. Each call of the io.Writer below writes whole blocks. It is not safe for concurrent use. After
// an error from below, everything returns that error.
type PacketWriter struct {
	// Unbuffered has each packet written below at once, for a program that may end at any moment. By default up to 64
	// KiB wait for more, or for Flush.
	Unbuffered bool

	to    io.Writer
	buf   []byte     // not yet written
	links []LinkType // by the number of the interface
	err   error      // sticky
}

// maxComment is the most bytes of a comment that are written.
const maxComment = 4096

// Options of blocks that are written.
const (
	optComment   = 1
	optAppl      = 4 // shb_userappl
	optDropCount = 4 // epb_dropcount
)

// NewPacketWriter begins a file. The application is the name of the program that writes it, of up to 32768 bytes.
func NewPacketWriter(w io.Writer, application string) (*PacketWriter, error) {
	if len(application) > 1<<15 {
		return nil, fmt.Errorf("capture: application name of %d bytes, want %d at most", len(application), 1<<15)
	}
	pw := &PacketWriter{to: w}
	pw.block(blockSection, func(b []byte) []byte {
		b = binary.LittleEndian.AppendUint32(b, orderMagic)
		b = append(b, 1, 0, 0, 0)                           // version 1.0
		b = binary.LittleEndian.AppendUint64(b, ^uint64(0)) // length of the section: not known
		if application == "" {
			return b
		}
		return appendOptions(b, optAppl, application)
	})
	return pw, nil
}

// Packet writes a packet: all but its Number. Wireshark shows the comments with it. A comment longer than
// 4096 bytes is cut.
func (w *PacketWriter) Packet(p *Packet, comments ...string) error {
	number := w.interfaceOf(p.Link)
	var ticks uint64
	if !p.Time.IsZero() {
		ticks = uint64(p.Time.UnixNano())
	}
	short := make([]string, len(comments))
	for i, c := range comments {
		short[i] = c[:min(len(c), maxComment)]
	}
	w.block(blockEnhanced, func(b []byte) []byte {
		for _, v := range [...]uint32{number, uint32(ticks >> 32), uint32(ticks), uint32(len(p.Data)), uint32(max(p.OrigLen, len(p.Data)))} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		b = pad(append(b, p.Data...), len(p.Data))
		if p.Dropped > 0 {
			b = append(b, optDropCount, 0, 8, 0)
			b = binary.LittleEndian.AppendUint64(b, p.Dropped)
			if len(short) == 0 {
				b = append(b, 0, 0, 0, 0)
			}
		}
		return appendOptions(b, optComment, short...)
	})
	if w.Unbuffered || len(w.buf) >= writerChunk {
		return w.Flush()
	}
	return w.err
}

// interfaceOf returns the number of a link's interface, which is described when it is first used.
func (w *PacketWriter) interfaceOf(link LinkType) uint32 {
	if i := slices.Index(w.links, link); i >= 0 {
		return uint32(i)
	}
	w.links = append(w.links, link)
	w.block(blockInterface, func(b []byte) []byte {
		b = binary.LittleEndian.AppendUint32(b, uint32(link))
		b = binary.LittleEndian.AppendUint32(b, 0) // no snap length
		return append(b, optTsresol, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0)
	})
	return uint32(len(w.links) - 1)
}

// Flush writes what has been kept back.
func (w *PacketWriter) Flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.to.Write(w.buf)
	}
	w.buf = w.buf[:0]
	return w.err
}

// block adds a block, whose content body appends.
func (w *PacketWriter) block(kind uint32, body func([]byte) []byte) {
	le, from := binary.LittleEndian, len(w.buf)
	b := body(append(le.AppendUint32(w.buf, kind), 0, 0, 0, 0))
	size := uint32(len(b) - from + blockTail)
	le.PutUint32(b[from+4:], size)
	w.buf = le.AppendUint32(b, size)
}

// appendOptions appends options of one kind, and the end of them if there are any.
func appendOptions(b []byte, kind uint16, values ...string) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint16(b, kind)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(v)))
		b = pad(append(b, v...), len(v))
	}
	if len(values) > 0 {
		b = append(b, 0, 0, 0, 0)
	}
	return b
}

// pad appends zeros after n bytes up to a multiple of four.
func pad(b []byte, n int) []byte {
	for ; n%4 != 0; n++ {
		b = append(b, 0)
	}
	return b
}
