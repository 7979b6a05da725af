package decode

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/layout"
)

// Evidence is the bytes that show a [Finding].
type Evidence struct {
	Offset uint64 // stream offset
	Bytes  []byte // as they are
	Want   []byte // as they should be, as long as Bytes; nil if that is not known
}

// Places of fields in an untagged ULPDU: RFC 5041, section 4.3.
const (
	ddpControl   = 0
	rdmapControl = 1
	qnField      = 6
	msnField     = 10
)

// evidence returns the bytes that show a finding at an FPDU, nil if none do.
func (h *half) evidence(k finding, f *FPDU) *Evidence {
	if f.Bytes == nil || f.Chunk != nil {
		return nil
	}
	switch k.name {
	case findCRC.name:
		return crcEvidence(f)
	case findMarker.name:
		return markerEvidence(f)
	}
	if !f.HasSegment {
		return nil
	}
	return h.headerEvidence(k, f)
}

// headerEvidence is about the headers of DDP and RDMAP.
func (h *half) headerEvidence(k finding, f *FPDU) *Evidence {
	s := &f.Segment
	switch k.name {
	case findMSN.name:
		return f.field(msnField, binary.BigEndian.AppendUint32(nil, h.messages.queues[s.QN].msn))
	case findQueue.name:
		if info, known := f.Op.Info(); known && !info.Tagged && !s.Tagged {
			return f.field(qnField, binary.BigEndian.AppendUint32(nil, info.QN))
		}
	case findVersion.name:
		v := h.c.pub.Version
		return f.field(ddpControl, []byte{f.ULPDU[ddpControl]&^3 | v, f.ULPDU[rdmapControl]&^0xc0 | v<<6})
	case findReserved.name:
		return f.field(ddpControl, []byte{f.ULPDU[ddpControl] &^ 0x3c, f.ULPDU[rdmapControl] &^ 0x30})
	}
	return nil
}

// field is evidence of a field of the ULPDU, which is not where a marker is in or before it.
func (f *FPDU) field(at int, want []byte) *Evidence {
	from := layout.LengthLen + at
	end := from + len(want)
	if len(f.Markers) > 0 && f.Markers[0].Offset < f.Offset+uint64(end) || end > len(f.Bytes) {
		return nil
	}
	return &Evidence{f.Offset + uint64(from), f.Bytes[from:end], want}
}

func crcEvidence(f *FPDU) *Evidence {
	n := len(f.Bytes) - layout.CRCLen
	if n < 0 || f.mispadded() {
		return nil
	}
	return &Evidence{f.Offset + uint64(n), f.Bytes[n:], layout.AppendCRC(nil, layout.CRC32C(0, f.Bytes[:n]))}
}

func markerEvidence(f *FPDU) *Evidence {
	header := f.Offset
	if len(f.Markers) > 0 && f.Markers[0].Offset == f.Offset {
		header += layout.MarkerLen
	}
	for _, m := range f.Markers {
		at := int(m.Offset - f.Offset)
		if m.Valid || at+layout.MarkerLen > len(f.Bytes) {
			continue
		}
		want := layout.Pointer(header, m.Offset)
		return &Evidence{m.Offset, f.Bytes[at : at+layout.MarkerLen], []byte{0, 0, byte(want >> 8), byte(want)}}
	}
	return nil
}
