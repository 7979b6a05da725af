package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A half is one direction of a DDP stream session, in the order of its DDP-SSNs.
type half struct {
	messages []message
	gap      string // what is wrong with its DDP-SSNs, or "gapless"
}

// halves takes an association apart that has one session, or several on one stream, of which the last counts.
func (a *association) halves() (h [2]half) {
	for dir := range h {
		for _, m := range a.messages {
			if m.dir == direction(dir) {
				h[dir].messages = append(h[dir].messages, m)
			}
		}
		h[dir].order()
	}
	return h
}

// order sorts by DDP-SSN, which counts from 0 without gaps.
//
// RFC 5043, section 6.1: "The DDP-SSN is reset to zero at the beginning of each DDP Stream Session"; section 6: they
// "MUST NOT have any gaps."
func (h *half) order() {
	slices.SortStableFunc(h.messages, func(a, b message) int { return cmp.Compare(a.ssn(), b.ssn()) })
	h.gap = "gapless"
	for i, m := range h.messages {
		if m.ssn() != i {
			h.gap = fmt.Sprintf("%d-in-place-of-%d", m.ssn(), i)
			return
		}
	}
}

// ssn is -1 for a message without one.
func (m *message) ssn() int {
	if ssn, ok := sctp.SSN(m.data); ok {
		return int(ssn)
	}
	return -1
}

// control returns the first session control message of a direction.
func (h *half) control() (c sctp.Control, ok bool) {
	if len(h.messages) == 0 || h.messages[0].ppid != sctp.PPIDControl {
		return c, false
	}
	c, _ = sctp.ParseControl(h.messages[0].data) // as much of it as there is
	return c, len(h.messages[0].data) >= 4
}

// last says what a direction ends with.
func (h *half) last() string {
	if len(h.messages) == 0 {
		return "nothing"
	}
	m := h.messages[len(h.messages)-1]
	if m.ppid != sctp.PPIDControl {
		return "segment"
	}
	c, _ := sctp.ParseControl(m.data)
	return strings.ToLower(strings.ReplaceAll(c.Function.String(), " ", "-"))
}

// sent reads the DDP Segments of a direction.
func (h *half) sent() (s sent) {
	for _, m := range h.messages {
		if m.ppid != sctp.PPIDSegment {
			continue
		}
		seg, err := ddp.Parse(m.data[min(sctp.SSNLen, len(m.data)):])
		if err != nil {
			s.err = err
			return s
		}
		s.addSegment(&seg)
	}
	return s
}

// describe returns a line for each session control message that begins a direction.
func (a *association) describe() (lines []string) {
	h := a.halves()
	for dir := range h {
		if c, ok := h[dir].control(); ok {
			line := fmt.Sprintf("%v %v pd %d", direction(dir), c.Function, len(c.PrivateData))
			if c.HasEnhanced() {
				line += fmt.Sprintf(" flags %s ird %v ord %v", flags(&c.Enhanced), c.Enhanced.IRD, c.Enhanced.ORD)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// addFacts notes what the messages of an association show.
func (a *association) addFacts(f *facts) {
	h := a.halves()
	f.sayf(onWire, "indication", "%d/%d", wording.Bit(a.indicated[toResponder]), wording.Bit(a.indicated[toInitiator]))
	f.say(onWire, "chunks", a.chunks())
	f.sayf(onWire, "ssn", "%s/%s", h[toResponder].gap, h[toInitiator].gap)
	f.sayf(onWire, "last", "%s/%s", h[toResponder].last(), h[toInitiator].last())
	f.say(onWire, "closed", cmp.Or(a.ended, "open"))
	q, asked := h[toResponder].control()
	p, answered := h[toInitiator].control()
	if asked && answered {
		f.sayf(onWire, "codes", "%d/%d", q.Function, p.Function)
	}
	f.addEnhanced(enhancedOf(&q), enhancedOf(&p))
	up, down := h[toResponder].sent(), h[toInitiator].sent()
	up.addFacts(f)
	down.addFacts(f)
	switch p.Function {
	case sctp.FunctionAccept:
		f.addAccepted(&up, &down, a.first(), mpa.DialectRFC5044, nil)
	case sctp.FunctionEnhancedAccept:
		f.addAccepted(&up, &down, a.first(), mpa.DialectRFC6581, enhancedOf(&p))
	}
}

// enhancedOf returns the enhanced data of a message, nil if it has none.
func enhancedOf(c *sctp.Control) *mpa.Enhanced {
	if !c.HasEnhanced() {
		return nil
	}
	return &c.Enhanced
}

// first says who sent the first DDP Segment.
func (a *association) first() string {
	for _, m := range a.messages {
		if m.ppid == sctp.PPIDSegment {
			return [2]string{byInitiator, byResponder}[m.dir]
		}
	}
	return "nobody"
}

// chunks says what the chunks of all messages have in common.
//
// RFC 5043, section 10: "The adaptation layer MUST use the Unordered option on all Data Chunks"; section 5.1: an
// association "will carry only SCTP Data Chunks as defined in this document"; section 9: "SCTP data chunk fragmentation
// MUST NOT be used".
func (a *association) chunks() string {
	stream := -1
	for _, m := range a.messages {
		switch {
		case !m.unordered:
			return "ordered"
		case !m.whole:
			return "fragmented"
		case m.ppid != sctp.PPIDSegment && m.ppid != sctp.PPIDControl:
			return fmt.Sprintf("PPID-%d", m.ppid)
		case stream >= 0 && stream != int(m.stream):
			return "of-several-streams"
		}
		stream = int(m.stream)
	}
	return "as-they-should"
}
