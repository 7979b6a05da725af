package decode

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A field is a part of a frame.
type field struct {
	bytes []byte
	name  string
	value string
}

// hexPayload is the bytes of a field that are shown.
const hexPayload = 64

// The columns of bytes: of all that a line has, and of what most fields have, for terminals that are narrow.
const (
	hexColumns   = 48
	fewColumns   = 24
	narrowScreen = 112
)

// annotate prints fields with their offsets, bytes, names and values.
func (t *Text) annotate(fields []field, at uint64) {
	wide := hexColumns
	if t.cfg.Columns > 0 && t.cfg.Columns < narrowScreen {
		wide = fewColumns
	}
	for _, f := range fields {
		text := strings.TrimRight(f.name+"  "+f.value, " ")
		for i, line := range wording.Hex(f.bytes, hexPayload) {
			t.put(strings.TrimRight(fmt.Sprintf("%-*s %s", wide, line, text), " "), "      %8d  ", at+uint64(i))
			text = ""
		}
		if n := len(f.bytes) - hexPayload; n > 0 {
			t.put(fmt.Sprintf("and %s more", wording.Bytes(n)), "      %8s  ", "")
		}
		at += uint64(len(f.bytes))
	}
}

// cutter takes bytes off a frame, one field after the other.
type cutter struct {
	b    []byte
	list []field
}

func (c *cutter) cutField(n int, name, format string, args ...any) {
	n = min(n, len(c.b))
	if n == 0 {
		return
	}
	c.list = append(c.list, field{c.b[:n], name, fmt.Sprintf(format, args...)})
	c.b = c.b[n:]
}

// startupFields returns the fields of a startup frame.
func startupFields(s *Startup) []field {
	c := cutter{b: s.Bytes}
	switch s.Frame {
	case FrameStreaming:
		return nil
	case FrameSession:
		c.control(s)
	case FrameMessage:
		c.cutField(2, "Private Data Length", "%d", len(s.PrivateData))
	case FrameStartKey:
		k := mpa.StartKey(s.Bytes)
		c.cutField(15, "Key", "%q", k.Key())
		c.cutField(1, "M C Res Rev", "M=%d C=%d Res=%d Rev=%d", wording.Bit(k.M()), wording.Bit(k.C()), k.Res(), k.Rev())
	default:
		f := s.Fields
		c.cutField(mpa.KeyLen, "Key", "%q", f.Key())
		c.cutField(1, "M C R S Res", "M=%d C=%d R=%d S=%d Res=%d",
			wording.Bit(f.M()), wording.Bit(f.C()), wording.Bit(f.R()), wording.Bit(f.S()), f.Res())
		c.cutField(1, "Rev", "%d", f.Rev())
		c.cutField(2, "PD_Length", "%d", f.PDLength())
		if e, ok := f.Enhanced(); ok && len(f) > mpa.StartupHeaderLen {
			c.enhanced(&e)
		}
	}
	if s.Cut > 0 {
		c.cutField(len(c.b), "Private Data", "cut off: %d more", s.Cut)
	}
	c.cutField(len(c.b), "Private Data", "%s", ulpdata.Describe(s.PrivateData))
	return c.list
}

// fpduFields returns the fields of an FPDU: as on the stream, or those of the ULPDU
// where the bytes are not there.
func fpduFields(f *FPDU) []field {
	if f.Chunk != nil {
		return chunkFields(f)
	}
	if f.Bytes == nil {
		c := cutter{b: f.ULPDU}
		c.ulpdu(f)
		return c.list
	}
	// Markers stand anywhere: the fields are found in what is left without them.
	inner := cutter{b: withoutMarkers(f)}
	inner.cutField(2, "ULPDU_Length", "%d", f.Length)
	if f.HasSegment {
		inner.ulpdu(f)
	}
	if left := len(inner.b); left > 4 {
		inner.cutField(left-4, wording.If(f.HasSegment, "PAD", "not decoded"), "")
	}
	inner.cutField(4, "CRC", "%v", f.CRC)
	return withMarkers(f, inner.list)
}

// withoutMarkers returns the bytes of an FPDU that are no markers.
func withoutMarkers(f *FPDU) []byte {
	if len(f.Markers) == 0 {
		return f.Bytes
	}
	var b []byte
	at := f.Offset
	for _, m := range f.Markers {
		b = append(b, f.Bytes[at-f.Offset:m.Offset-f.Offset]...)
		at = min(m.Offset+4, f.End)
	}
	return append(b, f.Bytes[at-f.Offset:]...)
}

// withMarkers puts the markers of an FPDU between its fields, and into them.
func withMarkers(f *FPDU, fields []field) (list []field) {
	marks, at := f.Markers, f.Offset
	for _, x := range fields {
		for len(marks) > 0 && marks[0].Offset < at+uint64(len(x.bytes)) {
			m := marks[0]
			marks = marks[1:]
			if n := m.Offset - at; n > 0 {
				list = append(list, field{x.bytes[:n], x.name, x.value})
				x = field{x.bytes[n:], x.name, "(goes on)"}
			}
			b := f.Bytes[m.Offset-f.Offset : m.Offset-f.Offset+4]
			list = append(list, field{b, "marker",
				fmt.Sprintf("FPDUPTR %d, %s", m.FPDUPTR, wording.If(m.Valid, "right", "wrong"))})
			at = m.Offset + 4
		}
		list = append(list, x)
		at += uint64(len(x.bytes))
	}
	return list
}

// ulpdu takes the fields of a ULPDU.
func (c *cutter) ulpdu(f *FPDU) {
	s := &f.Segment
	if !f.HasSegment {
		c.cutField(f.Length, "ULPDU", "no DDP header")
		return
	}
	c.cutField(1, "DDP control", "T=%d L=%d Rsvd=%d DV=%d", wording.Bit(s.Tagged), wording.Bit(s.Last), s.Rsvd, s.Version)
	version, op := rdmap.ParseControl(s.RsvdULP)
	c.cutField(1, "RDMAP control", "RV=%d Opcode=%d %v", version, op, op)
	if s.Tagged {
		c.cutField(4, "STag", "%#08x", s.STag)
		c.cutField(8, "TO", "%#x", s.TO)
	} else {
		c.cutField(4, wording.If(f.invalidates(), "Invalidate STag", "RsvdULP[8:39]"), "%#08x", s.ULP)
		c.cutField(4, "QN", "%d", s.QN)
		c.cutField(4, "MSN", "%d", s.MSN)
		c.cutField(4, "MO", "%d", s.MO)
	}
	n := len(s.Payload)
	switch {
	case f.Terminate != nil:
		before := len(c.b)
		c.terminate(f.Terminate)
		n -= before - len(c.b)
	default:
		for _, x := range f.header() {
			c.cutField(x.Len, x.Name, "%s", x.Text)
			n -= x.Len
		}
	}
	c.cutField(max(n, 0), "payload", "%s", wording.Bytes(uint64(max(n, 0))))
}

func (c *cutter) terminate(t *rdmap.Terminate) {
	c.cutField(2, "Layer EType Code", "%v (%v layout)", t.Code, t.Layout)
	c.cutField(2, "HdrCt Reserved", "M=%d D=%d R=%d", wording.Bit(t.HasLength), wording.Bit(t.DDPHeader != nil),
		wording.Bit(t.RDMAPHeader != nil))
	if t.HasLength || t.DDPHeader != nil {
		c.cutField(2, "DDP Segment Length", "%d", t.SegmentLength)
	}
	if t.DDPHeader != nil {
		h, _ := t.Header()
		c.cutField(len(t.DDPHeader), "Terminated DDP Header", "%v", h)
	}
	if t.RDMAPHeader != nil {
		r, _ := t.ReadRequest()
		c.cutField(len(t.RDMAPHeader), "Terminated RDMA Header", "%v", r)
	}
}
