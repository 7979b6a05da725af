package page

import (
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/rdmap"
)

// fpdus are those of a connection, in the order in which they were complete.
type fpdus struct {
	Count int `json:"count"`
	// Flags is the direction and what else is a bit or a few: see flagsOf.
	Flags column `json:"flags"`
	// Gap is the bytes between the FPDU before in its direction and this one.
	Gap    column `json:"gap"`
	Size   column `json:"size"`
	Packet column `json:"packet"` // the first one
	Later  column `json:"later"`  // how many packets later it was complete
	Time   column `json:"time"`   // of completion, in ns since the connection's first packet
	Length column `json:"length"` // ULPDU_Length
	Header column `json:"header"` // bytes of the ULPDU that are not payload
	Cut    column `json:"cut"`
	// STag or QN; the upper half of TO or MSN; the lower half of TO or MO; the ULP's
	// field of an untagged message.
	A   column `json:"a"`
	B   column `json:"b"`
	C   column `json:"c"`
	ULP column `json:"ulp"`

	// Requests is what the Read Requests among them ask for.
	Requests requests `json:"requests"`
	// Texts describes some, by row: errors, Terminates, and what the ULP says.
	Texts map[string]string `json:"texts,omitempty"`
	// Omitted is how many are not shown.
	Omitted uint64 `json:"omitted"`

	ends [2]uint64
}

// requests are Read Requests.
type requests struct {
	Count    int    `json:"count"`
	Size     column `json:"size"`
	SinkSTag column `json:"sinkSTag"`
	SinkHigh column `json:"sinkHigh"`
	SinkLow  column `json:"sinkLow"`
	SrcSTag  column `json:"srcSTag"`
	SrcHigh  column `json:"srcHigh"`
	SrcLow   column `json:"srcLow"`
}

// FPDU is part of [decode.Consumer].
func (p *Page) FPDU(c *decode.Connection, f *decode.FPDU) {
	own := shown(c)
	if own == nil {
		return
	}
	own.reach(f.Dir, f.End)
	own.ladder.fpdu(f)
	if !takeOne(&p.left.fpdus) {
		own.fpdus.Omitted++
		return
	}
	if text := describe(f); text != "" && takeOne(&p.left.texts) {
		own.fpdus.text(own.fpdus.Count, text)
	}
	if f.ReadRequest != nil {
		own.reads.asked(own.fpdus.Count, f)
	}
	own.places.add(f.Dir, f.Offset, own.fpdus.Count)
	own.fpdus.add(c, f)
	for i := range f.Markers {
		if !takeOne(&p.left.markers) {
			own.markers.Omitted++
			continue
		}
		own.markers.add(f.Dir, &f.Markers[i])
	}
}

func (l *fpdus) add(c *decode.Connection, f *decode.FPDU) {
	d := int(f.Dir)
	l.Flags.add(0, flagsOf(f))
	l.Gap.plain(int64(f.Offset - l.ends[d]))
	l.ends[d] = f.End
	l.Size.add(d, uint64(f.Size()))
	l.Packet.add(d, f.First.Number)
	l.Later.plain(int64(f.Last.Number - f.First.Number))
	l.Time.add(0, uint64(f.Last.Time.Sub(c.TCP.First.Time)))
	l.Length.add(d, uint64(f.Length))
	l.Cut.plain(int64(f.Cut))
	l.header(f)
	if f.ReadRequest != nil {
		l.Requests.add(d, f.ReadRequest)
	}
	l.Count++
}

// header adds the headers of DDP and RDMAP.
func (l *fpdus) header(f *decode.FPDU) {
	d, g := int(f.Dir), &f.Segment
	if !f.HasSegment {
		g.Tagged = false
	}
	header, lane := len(f.ULPDU)-len(g.Payload), d
	a, b, c := g.QN, g.MSN, g.MO
	if g.Tagged {
		lane += 2
		a, b, c = g.STag, uint32(g.TO>>32), uint32(g.TO)
	}
	l.Header.add(lane, uint64(header))
	l.A.add32(lane, a)
	l.B.add32(lane, b)
	l.C.add32(lane, c)
	l.ULP.add32(lane, g.ULP)
}

// describe says what is wrong with an FPDU, and what a Terminate says.
func describe(f *decode.FPDU) string {
	switch {
	case f.Err != nil:
		return f.Err.Error()
	case f.Terminate != nil:
		return f.Terminate.String()
	}
	return ""
}

// flagsOf packs what is said of an FPDU by bits: js/data.js takes them apart.
func flagsOf(f *decode.FPDU) uint64 {
	v := uint64(f.Dir) | uint64(f.Op&0xf)<<1 | uint64(f.CRC&3)<<5
	for i, set := range [...]bool{
		f.HasSegment, f.Segment.Tagged, f.Segment.Last, f.Begins, f.Ends, f.Err != nil,
		f.RTR != 0, f.ReadRequest != nil,
	} {
		if set {
			v |= 1 << (7 + i)
		}
	}
	return v
}

func (l *requests) add(lane int, r *rdmap.ReadRequest) {
	l.Count++
	l.Size.add32(lane, r.Size)
	l.SinkSTag.add32(lane, r.SinkSTag)
	l.SinkHigh.add32(lane, uint32(r.SinkTO>>32))
	l.SinkLow.add32(lane, uint32(r.SinkTO))
	l.SrcSTag.add32(lane, r.SrcSTag)
	l.SrcHigh.add32(lane, uint32(r.SrcTO>>32))
	l.SrcLow.add32(lane, uint32(r.SrcTO))
}

// markers are those of the FPDUs that are shown.
type markers struct {
	Count   int    `json:"count"`
	Flags   column `json:"flags"`   // 1: backward; 2: not valid
	Offset  column `json:"offset"`  // less that of the one before in its direction
	FPDUPTR column `json:"fpduptr"` // as on the stream
	Omitted uint64 `json:"omitted"`
}

func (l *markers) add(d capture.Dir, m *decode.Marker) {
	flags := uint64(d)
	if !m.Valid {
		flags |= 2
	}
	l.Flags.add(0, flags)
	l.Offset.add(int(d), m.Offset)
	l.FPDUPTR.add(int(d), uint64(m.FPDUPTR))
	l.Count++
}

// segments are the TCP segments with bytes, as they were captured.
type segments struct {
	Count    int    `json:"count"`
	Flags    column `json:"flags"` // direction, order, match, keep-alive: see js/data.js
	Gap      column `json:"gap"`   // from the end of the one before in its direction
	Length   column `json:"length"`
	Packet   column `json:"packet"`
	Time     column `json:"time"`     // in ns since the connection's first packet
	Repeated column `json:"repeated"` // bytes that were captured before
	Omitted  uint64 `json:"omitted"`

	ends [2]uint64
}

// Segment is part of [decode.Consumer].
func (p *Page) Segment(c *decode.Connection, s *decode.Segment) {
	own := shown(c)
	if own == nil {
		return
	}
	own.ladder.segment(s)
	own.closing(s)
	if s.Length == 0 {
		return
	}
	own.reach(s.Dir, s.End())
	if !takeOne(&p.left.segments) {
		own.segments.Omitted++
		return
	}
	own.segments.add(c, s)
}

// A closing is a packet with a FIN or RST.
type closing struct {
	Dir    capture.Dir   `json:"dir"`
	Time   time.Duration `json:"time"`
	Packet uint64        `json:"packet"`
	Kind   string        `json:"kind"`
}

// closing takes note of when a packet came, and whether it closes the connection.
func (c *connection) closing(s *decode.Segment) {
	at := s.Packet.Time.Sub(c.of.TCP.First.Time)
	c.last = max(c.last, at)
	if s.Flags&(capture.FIN|capture.RST) == 0 || len(c.closes) >= maxCloses {
		return
	}
	kind := wording.If(s.Flags.Has(capture.RST), "RST", "FIN")
	c.closes = append(c.closes, closing{Dir: s.Dir, Time: at, Packet: s.Packet.Number, Kind: kind})
}

func (l *segments) add(c *decode.Connection, s *decode.Segment) {
	d := int(s.Dir)
	flags := uint64(s.Dir) | uint64(s.Order&7)<<1 | uint64(s.Match&3)<<4
	if s.KeepAlive {
		flags |= 1 << 6
	}
	l.Flags.add(0, flags)
	l.Gap.plain(int64(s.Offset - l.ends[d]))
	l.ends[d] = s.End()
	l.Length.add(d, uint64(s.Length))
	l.Packet.add(d, s.Packet.Number)
	l.Time.add(0, uint64(s.Packet.Time.Sub(c.TCP.First.Time)))
	l.Repeated.plain(int64(s.Repeated))
	l.Count++
}
