package decode

import (
	"container/list"
	"errors"
	"io"
	"maps"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/ulp"
	"github.com/goiwarp/iwarp/mpa"
)

// Run reads a capture to its end and tells a consumer about the iWARP connections in it.
// The error is one of the capture; io.EOF is not an error. What came before an error is
// reported, and counted in the Totals.
func Run(r io.Reader, cfg Config, to Consumer) (Totals, error) {
	file, err := capture.Open(r)
	if err != nil {
		return Totals{}, err
	}
	return RunPackets(file, cfg, to)
}

// A Source gives packets one by one, as a [capture.Reader] does. The error at its end is io.EOF. If it has a method
// Lost() uint64, that returns how many packets were dropped after the last one.
type Source interface {
	Next() (*capture.Packet, error)
}

// RunPackets is Run for packets that come from elsewhere, such as a network interface.
func RunPackets(from Source, cfg Config, to Consumer) (Totals, error) {
	d := New(cfg, to)
	tracker := capture.NewTracker(cfg.Capture, d)
	var err error
	for {
		var p *capture.Packet
		if p, err = from.Next(); err != nil {
			break
		}
		d.Packet(p)
		tracker.Packet(p)
		if cfg.After != nil {
			cfg.After(p)
		}
	}
	if l, ok := from.(interface{ Lost() uint64 }); ok {
		d.drop(l.Lost(), d.number+1)
	}
	tracker.Flush()
	d.Flush()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return d.Totals(), err
}

// A Decoder is a [capture.Sink] that finds iWARP connections and tells a [Consumer]
// about them. It is not safe for concurrent use.
type Decoder struct {
	cfg    Config
	to     Consumer
	totals Totals
	latest time.Time // of the packets
	// dropped is the number of the last packet in front of which others were dropped, 0 if none were.
	dropped uint64
	number  uint64 // of the last packet

	sctp     *capture.Associations
	sessions int       // that have begun
	live     list.List // of *session: those that are open, the oldest first
	kept     int       // bytes that wait in them

	ulps ulp.Group[place]

	segment Segment
	fpdu    FPDU
	finding Finding
}

var _ capture.Sink = (*Decoder)(nil)

// New returns a Decoder.
func New(cfg Config, to Consumer) *Decoder {
	d := &Decoder{cfg: cfg, to: to, ulps: ulp.Group[place]{Most: cfg.MaxULP}}
	d.sctp = capture.NewAssociations(cfg.Capture, sctpSink{d})
	return d
}

// Flush ends the SCTP associations, since the capture is over; the tracker's Flush ends the
// TCP connections.
func (d *Decoder) Flush() { d.sctp.Flush() }

// Packet counts a packet for [Totals].
func (d *Decoder) Packet(p *capture.Packet) {
	d.totals.Packets++
	d.totals.Bytes += uint64(len(p.Data))
	d.number = p.Number
	d.drop(p.Dropped, p.Number)
	if len(p.Data) < p.OrigLen {
		d.totals.Cut++
	}
	if back := d.latest.Sub(p.Time); back > 0 {
		d.totals.Backwards++
		d.totals.BackwardsBy = max(d.totals.BackwardsBy, back)
		return
	}
	d.latest = p.Time
}

// Totals returns the counts so far.
func (d *Decoder) Totals() Totals {
	t := d.totals
	t.Unread = maps.Clone(t.Unread)
	return t
}

// conn is a TCP connection, whether it is iWARP or not, or a session over SCTP.
type conn struct {
	d      *Decoder
	tcp    *capture.Connection
	over   *session    // nil over TCP
	pub    *Connection // nil until it is known to be iWARP
	kept   []Segment
	halves [2]half
	start  startup
	heard  heard
	told   map[string]int  // findings by name
	notes  map[string]bool // that were told of, by direction and text

	expected bool // to be iWARP, whatever it begins with
	keyed    bool // it begins with a part of a key, the rest of which is cut off

	lenient bool // a startup has failed by what is known here: FPDUs may follow all the same
}

// Opened is part of [capture.Sink].
func (d *Decoder) Opened(tc *capture.Connection) {
	d.totals.Connections++
	if d.cfg.Want != nil && !d.cfg.Want(tc) {
		return
	}
	c := &conn{d: d, tcp: tc}
	for i := range c.halves {
		h := &c.halves[i]
		h.c, h.dir = c, capture.Dir(i)
	}
	tc.State = c
	if d.cfg.Expect != nil && d.cfg.Expect(tc) {
		c.expected, c.lenient = true, true
		c.found()
	}
}

// connOf returns what is known of a connection, nil if it is not looked at.
func connOf(tc *capture.Connection) *conn {
	c, _ := tc.State.(*conn)
	return c
}

// Segment is part of [capture.Sink].
func (d *Decoder) Segment(tc *capture.Connection, s *capture.Segment) {
	c := connOf(tc)
	if c == nil {
		return
	}
	out := Segment{
		Packet: capture.Stamp{Number: s.Packet.Number, Time: s.Packet.Time}, Dir: s.Dir,
		Flags: s.Flags, Seq: s.Seq, Ack: s.Ack,
		Window: s.Window, Offset: s.Offset, Length: s.Length, Captured: len(s.Data), Order: s.Order,
		Repeated: s.Repeated, Match: s.Match, First: s.First, KeepAlive: s.KeepAlive,
	}
	c.halves[s.Dir].acknowledges(s)
	if c.pub == nil {
		c.keepSegment(&out)
		return
	}
	c.observeSegment(&out)
	c.halves[s.Dir].arrived(&out, s.Data)
	d.tellSegment(c, &out)
}

// keepSegment keeps a segment until it is known whether the connection is iWARP.
func (c *conn) keepSegment(s *Segment) {
	if len(c.kept) >= maxKept {
		c.kept = c.kept[:copy(c.kept, c.kept[1:])]
	}
	c.kept = append(c.kept, *s)
}

// tellSegment tells of a segment.
func (d *Decoder) tellSegment(c *conn, s *Segment) {
	d.segment = *s
	d.to.Segment(c.pub, &d.segment)
	if s.Match == capture.MatchDiffers && !s.KeepAlive {
		c.differs(s)
	}
}

// found reports that the connection is iWARP, with what was kept of it.
func (c *conn) found() {
	if c.pub != nil {
		return
	}
	c.pub = &Connection{TCP: c.tcp, Revisions: [2]int{-1, -1}}
	if c.over != nil {
		c.pub.Session = &c.over.told
	} else {
		c.d.totals.IWARP++
	}
	c.d.to.Found(c.pub)
	for i := range c.kept {
		c.d.tellSegment(c, &c.kept[i])
	}
	c.kept = nil
	for i := range c.halves {
		h := &c.halves[i]
		for k := range h.gaps {
			h.missing(&h.gaps[k])
		}
	}
}

// Data is part of [capture.Sink].
func (d *Decoder) Data(tc *capture.Connection, b capture.Data) {
	if c := connOf(tc); c != nil {
		c.halves[b.Dir].data(&b)
	}
}

// Gap is part of [capture.Sink].
func (d *Decoder) Gap(tc *capture.Connection, g capture.Gap) {
	if c := connOf(tc); c != nil {
		c.halves[g.Dir].gap(&g)
	}
}

// Ended is part of [capture.Sink].
func (d *Decoder) Ended(tc *capture.Connection, e capture.End) {
	if last := e.Dir == capture.Backward || tc.Halves[capture.Backward].Ended(); last &&
		e.Reason == capture.EndEvicted {
		d.totals.Evicted++
	}
	if c := connOf(tc); c != nil {
		c.halves[e.Dir].finish(&e)
	}
}

// Forgotten is part of [capture.Sink].
func (d *Decoder) Forgotten(tc *capture.Connection) {
	c := connOf(tc)
	tc.State = nil
	if c == nil || c.pub == nil {
		return
	}
	c.pub.Unseen = c.lacksStartup() || c.startupDropped()
	c.unexpected()
	c.oneSided()
	c.summarize()
	c.wasReset()
	c.heard.leave()
	d.totals.count(c.pub)
	d.to.Ended(c.pub)
}

// exportedPDU is the link type of what package export puts beside the packets, where iWARP does not go unread.
const exportedPDU capture.LinkType = 252

// Skipped is part of [capture.Sink]. What is not TCP may be SCTP.
func (d *Decoder) Skipped(p *capture.Packet, why capture.Skip) {
	if why == capture.SkipNotTCP && d.sctp.Packet(p) {
		return
	}
	d.totals.Skipped++
	if why == capture.SkipNotTCP || why == capture.SkipNotIP || p.Link == exportedPDU {
		return
	}
	if d.totals.Unread == nil {
		d.totals.Unread = map[Unread]uint64{}
	}
	u := Unread{Why: why}
	if why == capture.SkipLink {
		u.Link = p.Link
	}
	d.totals.Unread[u]++
}

// isDialect reports whether what was agreed on is one of the given dialects.
func (c *conn) isDialect(of ...mpa.Dialect) bool {
	for _, d := range of {
		if c.pub.Dialect == d {
			return true
		}
	}
	return false
}
