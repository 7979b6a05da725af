package page

import (
	"bytes"
	"cmp"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
)

// Config names a page, and bounds it.
type Config struct {
	// Name is that of the capture, for the title.
	Name string
	// FPDUs, Segments and Markers are how many of each are shown, of all connections
	// together; the first ones are. If zero, the defaults below are used.
	FPDUs, Segments, Markers int
	// Connections is how many iWARP connections are shown; if zero, DefaultConnections.
	Connections int
}

// The defaults of [Config].
const (
	DefaultFPDUs       = 500_000
	DefaultSegments    = 1_000_000
	DefaultMarkers     = 2_000_000
	DefaultConnections = 1000
)

// Bounds of what is shown beside these.
const (
	maxFindings = 20_000
	maxSpans    = 100_000 // startup frames, streaming data and missing bytes on the map
	maxTexts    = 20_000  // Terminates and errors of FPDUs in words
	maxCloses   = 16      // FINs and RSTs of a connection on the time map
	maxSteps    = 64      // at the beginning of one ladder, and as many at its end
)

// A Page is a [decode.Consumer] that collects what a page shows. It is not safe for
// concurrent use.
type Page struct {
	decode.Ignore

	cfg         Config
	totals      decode.Totals
	connections []*connection
	left        budget
	unshown     int // connections
}

// A budget is how many of each may still be shown.
type budget struct{ connections, fpdus, segments, markers, findings, spans, texts, said int }

// takeOne takes one of what is left, if there is one.
func takeOne(left *int) bool {
	if *left <= 0 {
		return false
	}
	*left--
	return true
}

var _ decode.Consumer = (*Page)(nil)

// New returns an empty Page.
func New(cfg Config) *Page {
	return &Page{cfg: cfg, left: budget{
		connections: cmp.Or(cfg.Connections, DefaultConnections),
		fpdus:       cmp.Or(cfg.FPDUs, DefaultFPDUs),
		segments:    cmp.Or(cfg.Segments, DefaultSegments),
		markers:     cmp.Or(cfg.Markers, DefaultMarkers),
		findings:    maxFindings,
		spans:       maxSpans,
		texts:       maxTexts,
		said:        maxSaid,
	}}
}

// Totals takes what was in the capture, for the page's first lines.
func (p *Page) Totals(t decode.Totals) { p.totals = t }

// A connection is what the page shows of one.
type connection struct {
	of       *decode.Connection
	fpdus    fpdus
	segments segments
	markers  markers
	reads    reads
	places   places
	said     int    // lines of the ULP
	unsaid   uint64 // and those that are not shown
	answers  answers
	spans    []span
	spanned  uint64 // spans that are not shown
	ladder   ladder
	closes   []closing
	last     time.Duration // from the first packet to the latest
	findings []decode.Finding
	omitted  uint64 // findings that are not shown
	end      [2]uint64
	summary  [][2]string
}

// Found is part of [decode.Consumer].
func (p *Page) Found(c *decode.Connection) {
	if !takeOne(&p.left.connections) {
		p.unshown++
		return
	}
	own := &connection{of: c}
	p.connections = append(p.connections, own)
	c.State = own
}

// shown returns what is shown of a connection, nil if it is not.
func shown(c *decode.Connection) *connection {
	own, _ := c.State.(*connection)
	return own
}

// Ended is part of [decode.Consumer].
func (p *Page) Ended(c *decode.Connection) {
	if own := shown(c); own != nil {
		own.summary = c.Summary()
		own.ladder.ended(c)
	}
}

// Finding is part of [decode.Consumer].
func (p *Page) Finding(c *decode.Connection, f *decode.Finding) {
	own := shown(c)
	if own == nil {
		return
	}
	own.reads.found(f)
	if !takeOne(&p.left.findings) {
		own.omitted++
		return
	}
	kept := *f
	if e := f.Evidence; e != nil {
		kept.Evidence = &decode.Evidence{Offset: e.Offset, Bytes: bytes.Clone(e.Bytes), Want: bytes.Clone(e.Want)}
	}
	own.findings = append(own.findings, kept)
}

// Startup is part of [decode.Consumer].
func (p *Page) Startup(c *decode.Connection, s *decode.Startup) {
	own := shown(c)
	if own == nil {
		return
	}
	kind := "startup"
	if s.Frame == decode.FrameStreaming {
		kind = "streaming"
	}
	end := s.Offset + uint64(s.Size)
	p.span(own, span{Dir: s.Dir, Offset: s.Offset, End: end, Kind: kind, Text: s.String(), Packet: s.Last.Number})
	own.ladder.add(step{dir: s.Dir, kind: kind, offset: s.Offset, end: end, packet: s.Last, text: s.String()})
}

// Missing is part of [decode.Consumer].
func (p *Page) Missing(c *decode.Connection, m *decode.Missing) {
	own := shown(c)
	if own == nil {
		return
	}
	kind, text := "missing", m.Cause.String()
	if m.Captured {
		kind, text = "unframed", "these bytes are not decoded"
	}
	p.span(own, span{Dir: m.Dir, Offset: m.Offset, End: m.End, Kind: kind, Text: text, Packet: m.Packet.Number})
}

// A span is a run of bytes that is not an FPDU.
type span struct {
	Dir    capture.Dir `json:"dir"`
	Offset uint64      `json:"offset"`
	End    uint64      `json:"end"`
	Kind   string      `json:"kind"`
	Text   string      `json:"text"`
	Packet uint64      `json:"packet"`
}

func (p *Page) span(c *connection, s span) {
	c.reach(s.Dir, s.End)
	if !takeOne(&p.left.spans) {
		c.spanned++
		return
	}
	c.spans = append(c.spans, s)
}

// reach takes note of how long a direction is.
func (c *connection) reach(d capture.Dir, end uint64) { c.end[d] = max(c.end[d], end) }
