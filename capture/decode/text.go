package decode

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// TextConfig says what a [Text] prints beside startup frames, findings and summaries.
type TextConfig struct {
	FPDUs bool // one line for each FPDU
	Hex   bool // startup frames and FPDUs, field by field
	// Columns, if not 0, is how many a terminal has: the first line is one of headings then, and what is longer goes on
	// below.
	Columns int
}

// A Text is a [Consumer] that prints what it is told, a line or a few for each event. A
// line begins with the connection's number, the packet's, the time in seconds since the
// connection's first packet, and the direction. Nothing of it is kept: a capture may be longer than memory, and a live
// one has no end.
type Text struct {
	Ignore

	cfg    TextConfig
	w      *bufio.Writer
	headed bool
}

var _ Consumer = (*Text)(nil)

// NewText returns a Text that prints to w. Call Flush at the end.
func NewText(w io.Writer, cfg TextConfig) *Text { return &Text{cfg: cfg, w: bufio.NewWriter(w)} }

// Flush writes what was kept back, and returns the first error of the writer below.
func (t *Text) Flush() error { return t.w.Flush() }

// line prints one line on a packet.
func (t *Text) line(c *Connection, p capture.Stamp, d capture.Dir, text string) {
	if p.Number == 0 { // its packet is not known any more
		p = c.TCP.Last
	}
	t.put(text, "#%-4s %8d %11.6f %v ", c.Label(), p.Number, since(c, p), d)
}

// since returns the seconds since the connection's first packet.
func since(c *Connection, p capture.Stamp) float64 {
	return p.Time.Sub(c.TCP.First.Time).Seconds()
}

// Found is part of Consumer.
func (t *Text) Found(c *Connection) {
	t.headings()
	t.put(c.String(), "#%-4s ", c.Label())
}

// Startup is part of Consumer.
func (t *Text) Startup(c *Connection, s *Startup) {
	t.line(c, s.Last, s.Dir, s.String())
	t.hex(func() []field { return startupFields(s) }, s.Offset)
}

// FPDU is part of Consumer.
func (t *Text) FPDU(c *Connection, f *FPDU) {
	if t.cfg.FPDUs || t.cfg.Hex {
		t.line(c, f.Last, f.Dir, f.String())
		t.hex(func() []field { return fpduFields(f) }, f.Offset)
	}
}

// hex prints fields, if that is wanted.
func (t *Text) hex(fields func() []field, at uint64) {
	if t.cfg.Hex {
		t.annotate(fields(), at)
	}
}

// Missing is part of Consumer.
func (t *Text) Missing(c *Connection, m *Missing) {
	if !t.cfg.FPDUs && !t.cfg.Hex {
		return
	}
	why := "not decoded"
	if !m.Captured {
		why = m.Cause.String()
	}
	t.line(c, m.Packet, m.Dir, fmt.Sprintf("%s at %d %s", wording.Bytes(m.End-m.Offset), m.Offset, why))
}

// Read is part of Consumer.
func (t *Text) Read(c *Connection, r *Read) {
	if t.cfg.FPDUs {
		t.line(c, r.Last, r.Dir, fmt.Sprintf("Read of packet %d is complete: %s after %v",
			r.Request.Number, wording.Bytes(uint64(r.Size)), r.Latency()))
	}
}

// ULP is part of Consumer.
func (t *Text) ULP(c *Connection, u *ULP) {
	if t.cfg.FPDUs || t.cfg.Hex {
		t.line(c, u.Packet, u.Dir, u.String())
	}
}

// Finding is part of Consumer.
func (t *Text) Finding(c *Connection, f *Finding) {
	id := ""
	if f.ID != "" {
		id = " [" + f.ID + "]"
	}
	t.line(c, f.Packet, f.Dir, fmt.Sprintf("%s %s%s at %d: %s",
		strings.ToUpper(f.Severity.String()), f.Name, id, f.Offset, f.Text))
	if f.Advice != "" {
		t.put(f.Advice, "%30s ", "")
	}
}

// Ended is part of Consumer.
func (t *Text) Ended(c *Connection) {
	for _, row := range summary(c) {
		if row[0] == "" {
			t.put(row[1], "      ")
			continue
		}
		t.put(row[1], "      %-16s ", row[0])
	}
}

// String returns one line with all counts, such as "12 packets, 3456 bytes; 1 TCP connection, 1 of them iWARP; 0
// errors, 1 warning, 0 notes".
func (n *Totals) String() string {
	failed := ""
	if n.Failed > 0 {
		failed = fmt.Sprintf(", of which %d failed", n.Failed)
	}
	if n.Rejected > 0 {
		failed += fmt.Sprintf(", rejected: %d", n.Rejected)
	}
	return fmt.Sprintf("%s, %s; %s%s; %s", wording.Count(n.Packets, "packet"), wording.Bytes(n.Bytes), n.below(),
		failed, severities(n.Findings))
}

// Totals prints the last lines.
func (t *Text) Totals(n Totals) {
	for _, line := range append([]string{n.String()}, n.remarks()...) {
		t.put(line, "")
	}
}

// remarks says what of the capture was not read, and what to do about it.
func (n *Totals) remarks() (lines []string) {
	unnoticed := wording.If(n.IWARP+n.Sessions == 0, ", so that iWARP may have gone unnoticed", "")
	for u, packets := range n.Unread {
		lines = append(lines, fmt.Sprintf("not read: %s (%v)%s%s",
			wording.Count(packets, "packet"), u, unnoticed, u.advice()))
	}
	slices.Sort(lines)
	if n.Illegible > 0 {
		lines = append(lines, fmt.Sprintf("nothing could be read of %d of the iWARP connections; their findings say why", n.Illegible))
	}
	if n.Evicted > 0 {
		lines = append(lines, fmt.Sprintf("too many at once: %s forgotten in the middle; filter the capture", wording.Count(n.Evicted, "TCP connection")))
	}
	if n.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("dropped from the capture: %s; what was found on connections that were open then is a note at most: filter, or capture where there is less traffic",
			wording.Count(n.Dropped, "packet")))
	}
	if n.Cut > 0 {
		lines = append(lines, fmt.Sprintf("cut off by the snap length: %s%s; %s",
			wording.Count(n.Cut, "packet"), unnoticed, gapAdvice(capture.CauseSnap)))
	}
	if n.Backwards > 0 {
		lines = append(lines, fmt.Sprintf("not in order of time: %s, by up to %v; what was found may rest on that: sort the capture by time, as reordercap does",
			wording.Count(n.Backwards, "packet"), n.BackwardsBy))
	}
	return lines
}

// advice says what to do about it.
func (u Unread) advice() string {
	switch u.Why {
	case capture.SkipTunnel, capture.SkipEncrypted:
		return "; capture where the packets leave the tunnel"
	case capture.SkipFragment:
		return "; capture in front of where they are cut, or lower the MTU of the sender"
	case capture.SkipLink:
		return "; capture an Ethernet interface, or convert the capture"
	case capture.SkipShort:
		return "; " + gapAdvice(capture.CauseSnap)
	}
	return ""
}

// below counts what there is of TCP and of SCTP.
func (n *Totals) below() string {
	s := fmt.Sprintf("%s, %d of them iWARP", wording.Count(n.Connections, "TCP connection"), n.IWARP)
	if n.Associations == 0 {
		return s
	}
	over := fmt.Sprintf("%s, %s", wording.Count(n.Associations, "SCTP association"),
		wording.Count(n.Sessions, "DDP session"))
	if n.Connections == 0 {
		return over
	}
	return s + ", " + over
}

// severities counts findings in words.
func severities(n [3]uint64) string {
	return fmt.Sprintf("%s, %s, %s", wording.Count(n[Error], "error"), wording.Count(n[Warning], "warning"),
		wording.Count(n[Note], "note"))
}

// String returns one line, such as
// "mpa: start-req C pdlen 36 mpav2: enhanced - ird 32 ord 1 peer2peer read RTR".
func (s *Startup) String() string {
	switch s.Frame {
	case FrameStreaming:
		return fmt.Sprintf("mpa: %s of streaming data before the startup", wording.Bytes(uint64(s.Size)))
	case FrameSession:
		return s.control()
	case FrameMessage:
		return fmt.Sprintf("mpa: private-data pdlen %d: %s", len(s.PrivateData), ulpdata.Describe(s.PrivateData))
	case FrameStartKey:
		k := mpa.StartKey(s.Bytes)
		return fmt.Sprintf("mpa: start-key%s rev %d", flags(k.M(), k.C(), false), k.Rev())
	}
	f := s.Fields
	line := fmt.Sprintf("mpa: %v%s pdlen %d mpav%d", s.Frame, flags(f.M(), f.C(), f.R()), f.PDLength(), f.Rev())
	if e, ok := f.Enhanced(); ok && len(f) > mpa.StartupHeaderLen {
		line += ": enhanced - " + enhancedText(e)
	} else if f.S() {
		line += " S"
	}
	if f.Res() != 0 {
		line += fmt.Sprintf(" res 0x%x", f.Res())
	}
	if len(s.PrivateData) > 0 {
		line += ", private data " + ulpdata.Describe(s.PrivateData)
	}
	if s.Cut > 0 {
		line += fmt.Sprintf(", cut off: %s of private data", wording.Count(s.Cut, "byte"))
	}
	return line
}

func flags(m, c, r bool) (s string) {
	for _, f := range [...]struct {
		set  bool
		name string
	}{{m, " M"}, {c, " C"}, {r, " R"}} {
		if f.set {
			s += f.name
		}
	}
	return s
}

func enhancedText(e mpa.Enhanced) string {
	s := fmt.Sprintf("ird %v ord %v", e.IRD, e.ORD)
	if e.A {
		s += fmt.Sprintf(" peer2peer %s RTR", strings.ReplaceAll(e.RTR().String(), "|", " "))
	}
	return s
}

// String returns one line.
func (f *FPDU) String() string {
	if f.Chunk != nil {
		return f.chunk()
	}
	s := fmt.Sprintf("fpdu %d at %d size %d", f.Number, f.Offset, f.Size())
	if n := len(f.Markers); n > 0 {
		s += fmt.Sprintf(" markers %d", n)
	}
	s += " crc " + f.CRC.String()
	if f.Cut > 0 {
		s += fmt.Sprintf(" missing %d", f.Cut)
	}
	if f.First.Number != f.Last.Number {
		s += fmt.Sprintf(" since packet %d", f.First.Number)
	}
	if f.HasSegment {
		s += ": " + f.contents()
	}
	return s
}

// contents describes the message in an FPDU.
func (f *FPDU) contents() string {
	s := f.Op.String()
	if f.RTR != 0 {
		s += " (RTR)"
	}
	g := &f.Segment
	if g.Tagged {
		s += fmt.Sprintf(" stag %#08x to %#x", g.STag, g.TO)
	} else {
		s += fmt.Sprintf(" qn %d msn %d mo %d", g.QN, g.MSN, g.MO)
	}
	if f.invalidates() {
		s += fmt.Sprintf(" invalidate %#08x", g.ULP)
	}
	switch header := f.describe(); {
	case f.Terminate != nil:
		s += " " + f.Terminate.String()
	case header != "":
		s += " " + header
	default:
		s += fmt.Sprintf(" payload %d", len(g.Payload))
	}
	if g.Last {
		s += " last"
	}
	return s
}

// invalidates reports whether the message carries an Invalidate STag.
func (f *FPDU) invalidates() bool {
	info, _ := f.Op.Info()
	return info.Invalidate
}

// String returns one line, such as "NVMe: completion 0x0001, Connect: success (0x000), after 1.2ms".
func (u *ULP) String() string {
	s := u.Protocol + ": " + u.Text
	if u.Latency > 0 {
		s += ", after " + duration(uint64(u.Latency))
	}
	return s
}

// duration rounds a time for reading.
func duration(ns uint64) string { return time.Duration(ns).Round(time.Microsecond / 10).String() }
