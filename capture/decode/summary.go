package decode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/rdmap"
)

// Summary returns what is known of a connection as [Text] prints it: rows of a name and
// a text. A row without a name goes on with the one before.
func (c *Connection) Summary() [][2]string { return summary(c)[1:] }

// summary returns what is known of a connection, as names and texts.
func summary(c *Connection) (rows [][2]string) {
	add := func(name, text string) { rows = append(rows, [2]string{name, text}) }
	add("", fmt.Sprintf("summary of #%s %v", c.Label(), c))
	if c.Session != nil {
		rows = append(rows, c.sessionRows()...)
	} else {
		add("startup", c.startupText())
		if c.Agreed || c.Midstream {
			add("mode", c.modeText())
		}
	}
	if e := c.depthsText(); e != "" {
		add("IRD/ORD", e)
	}
	if r := c.rtrText(); r != "" {
		add("RTR", r)
	}
	for d, pd := range c.PrivateData {
		if len(pd) > 0 {
			add("private data "+capture.Dir(d).String(), ulpdata.Describe(pd))
		}
	}
	if u := &c.ULP; u.Messages > 0 || u.Forgotten {
		add("ULP", u.text())
	}
	for d := range c.Halves {
		if n := c.TCP.Halves[d].Count; n.Repeated+n.Missing > 0 && c.Session == nil {
			add(capture.Dir(d).String()+" TCP", fmt.Sprintf("%s in %s, %s retransmitted, %s missing",
				wording.Bytes(n.Bytes), wording.Count(n.Segments, "segment"), wording.Bytes(n.Repeated),
				wording.Bytes(n.Missing)))
		}
		rows = append(rows, c.Halves[d].rows(capture.Dir(d), c.Session != nil)...)
	}
	add("ended", c.endText())
	add("findings", severities(c.Findings)+c.suppressedText())
	return rows
}

func (u *ULPCount) text() string {
	const forgotten = "not followed to the end: too many connections at once"
	if u.Messages == 0 {
		return forgotten
	}
	s := fmt.Sprintf("%s: %s explained, %s", u.Protocol, wording.Count(u.Messages, "message"), wording.Count(u.Failures, "failure"))
	if l := &u.Latency; l.Count > 0 {
		s += "; answers after min " + latencies(l)
	}
	return s + wording.If(u.Forgotten, "; "+forgotten, "")
}

// latencies tells how long something took.
func latencies(l *Distribution) string {
	return fmt.Sprintf("%s, median %s, 99%% %s, max %s", duration(l.Min), duration(l.Percentile(50)), duration(l.Percentile(99)), duration(l.Max))
}

func (c *Connection) startupText() string {
	switch {
	case c.Midstream:
		return fmt.Sprintf("%v; FPDUs were found by their form, confidence: %v", c.startupSeen(), c.Confidence)
	case c.Rejected:
		return fmt.Sprintf("%v, rejected", c.Dialect)
	case c.illegible():
		return "not in the capture, or not all of it: nothing of the connection could be read"
	case c.Unseen:
		return "not in the capture, or not all of it"
	case c.Dialect == 0 && c.startupSeen() == 0:
		return "none was found"
	case !c.Agreed:
		return fmt.Sprintf("%v, not completed", c.Dialect)
	}
	return fmt.Sprintf("%v, revision %d from the Initiator (%v), %d from the Responder",
		c.Dialect, c.Revisions[c.Initiator], c.TCP.Halves[c.Initiator].Addr, c.Revisions[c.Responder()])
}

func (c *Connection) modeText() string {
	s := "CRC " + wording.OnOff(c.CRC)
	for d, on := range c.Markers {
		s += fmt.Sprintf(", markers %v %s", capture.Dir(d), wording.OnOff(on))
	}
	if c.Version == versionUnknown {
		return s
	}
	return s + fmt.Sprintf(", DDP and RDMAP version %d", c.Version)
}

func (c *Connection) depthsText() string {
	var parts []string
	for _, d := range []capture.Dir{c.Initiator, c.Responder()} {
		if e := c.Enhanced[d]; e != nil {
			parts = append(parts, fmt.Sprintf("%s IRD %v ORD %v",
				wording.If(d == c.Initiator, "asked", "got"), e.IRD, e.ORD))
		}
	}
	return strings.Join(parts, ", ")
}

func (c *Connection) rtrText() string {
	r := &c.RTR
	switch {
	case !r.PeerToPeer && r.Sent == 0:
		return ""
	case !r.PeerToPeer:
		return fmt.Sprintf("not negotiated, sent %v", r.Sent)
	}
	return fmt.Sprintf("asked %v, answered %v, sent %v", r.Offered, r.Answered, r.Sent)
}

func (c *Connection) endText() string {
	var parts []string
	for d := range c.Halves {
		h := &c.Halves[d]
		if !h.Ended {
			continue
		}
		parts = append(parts, fmt.Sprintf("%v %v%s in packet %d at %d",
			capture.Dir(d), h.End.Reason, wording.If(h.End.Peer, " by the other end", ""),
			h.End.Packet.Number, h.End.Offset))
	}
	return strings.Join(parts, ", ")
}

func (c *Connection) suppressedText() string {
	var parts []string
	for name, n := range c.Suppressed {
		parts = append(parts, fmt.Sprintf("%d more %s", n, name))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return ""
	}
	return "; not shown: " + strings.Join(parts, ", ")
}

// rows returns what is known of a direction.
func (h *Half) rows(d capture.Dir, session bool) (rows [][2]string) {
	dir := d.String()
	add := func(name, text string) { rows = append(rows, [2]string{name, text}) }
	if h.Undecoded > 0 {
		add(dir+" not decoded", wording.Bytes(h.Undecoded))
	}
	if h.FPDUs+h.Bad+h.Cut+h.Lost == 0 {
		return rows
	}
	add(dir+wording.If(session, " segments", " FPDUs"), h.counted(session))
	for op := range h.Ops {
		if n := &h.Ops[op]; n.Segments > 0 {
			add("", fmt.Sprintf("  %-20s %6d %-8s %7d %-8s %12d %s", rdmap.Opcode(op),
				n.Messages, wording.Things(n.Messages, "message"), n.Segments, wording.Things(n.Segments, "segment"),
				n.Bytes, wording.Things(n.Bytes, "byte")))
		}
	}
	if n := h.Malformed; n > 0 {
		add("", fmt.Sprintf("  %-20s %15s %7d %s", "not well-formed", "", n, wording.Things(n, "segment")))
	}
	if h.Sizes.Count > 0 {
		add(dir+wording.If(session, " segment sizes", " FPDU sizes"),
			fmt.Sprintf("min %d, median %s%d, max %d",
				h.Sizes.Min, wording.If(h.Sizes.Exact(), "", "at most "), h.Sizes.Percentile(50), h.Sizes.Max))
	}
	rows = append(rows, h.alignmentRows(d)...)
	// else every segment has come in order, and none held an FPDU up
	if max(h.Memory.TCP, h.Memory.MPA, h.Memory.Located) > 0 {
		add(dir+" memory", fmt.Sprintf("a receiver that waits for order holds at most %s; one that places whole FPDUs %d as the stream is, %d with markers, and one segment (%s) with Header Alignment",
			wording.Bytes(h.Memory.TCP), h.Memory.MPA, h.Memory.Located, wording.Bytes(h.Memory.Aligned)))
	}
	if r := &h.Reads; r.Count > 0 {
		add(dir+" Reads", fmt.Sprintf("%d answered, at most %d at once; latency min %s", r.Count, h.OutstandingReads, latencies(r)))
	}
	return rows
}

// counted says how much there was, and how much of it is not whole or in error.
func (h *Half) counted(session bool) string {
	s := fmt.Sprint(h.FPDUs)
	if other := h.Bad + h.Cut; other > 0 {
		s += fmt.Sprintf(" of %d whole and right", h.FPDUs+other)
	}
	if session {
		s += fmt.Sprintf(", %s with their DDP-SSNs", wording.Bytes(h.Bytes))
	} else {
		s += fmt.Sprintf(", %s on the stream, %s of ULPDUs", wording.Bytes(h.Bytes), wording.Bytes(h.Content))
	}
	if h.MarkerCount > 0 {
		s += ", " + wording.Count(h.MarkerCount, "marker")
	}
	var rest []string
	for _, part := range []struct {
		n    uint64
		text string
	}{
		{h.Bad, fmt.Sprintf("%d in error", h.Bad)},
		{h.Cut, fmt.Sprintf("%d not whole", h.Cut)},
		{h.Lost, wording.Bytes(h.Lost) + " in no FPDU"},
	} {
		if part.n > 0 {
			rest = append(rest, part.text)
		}
	}
	if len(rest) == 0 {
		return s
	}
	return s + "; " + strings.Join(rest, ", ")
}
