package probe

import (
	"fmt"
	"io"
	"strings"
)

// A page collects lines of a report.
type page struct{ b strings.Builder }

func (p *page) line(label, format string, args ...any) {
	fmt.Fprintf(&p.b, "  %-22s %s\n", label, fmt.Sprintf(format, args...))
}

func (p *page) head(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// Print writes the report as text.
func (r *Report) Print(w io.Writer) error {
	var p page
	r.printSummary(&p)
	r.printRevisions(&p)
	r.printNegotiation(&p)
	r.printBits(&p)
	r.printResemblance(&p)
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (r *Report) printSummary(p *page) {
	gone := ""
	if r.Incomplete {
		gone = ", and then nobody was there"
	}
	p.head("%s: %d questions asked%s", r.Peer, len(r.Questions), gone)
	names := make([]string, len(r.Dialects))
	for i, d := range r.Dialects {
		names[i] = d.String()
	}
	p.line("Dialects", "%s", orNone(strings.Join(names, ", ")))
	p.line("Kind of RNIC", "%v: %s", r.Kind, r.KindReason)
	p.line("Markers", "%s", r.Markers)
	p.line("CRC", "%s", r.CRC)
}

func orNone(s string) string {
	if s == "" {
		return "none that iwarp knows"
	}
	return s
}

func (r *Report) printRevisions(p *page) {
	p.head("How Requests are answered")
	v := &r.Revisions
	for _, q := range []*Question{
		v.One, v.OneSMBDirect, v.TwoPeerToPeer, v.TwoClientServer, v.TwoPlain, v.ThreeEnhanced, v.ThreePlain, v.Zero, v.RtrFrame, v.StartKey,
	} {
		p.question(q)
	}
	if r.EchoesReserved && v.RtrFrame.replied() && v.RtrFrame.reply.S() {
		p.line("", "(S in revision 1 means nothing here: reserved bits are echoed)")
	}
}

func (p *page) question(q *Question) {
	if q == nil {
		return
	}
	text := string(q.Outcome)
	if q.Answer != "" {
		text += ": " + q.Answer
	}
	if q.Then != "" {
		text += ", then " + q.Then
	}
	if len(q.Name) <= 22 {
		p.line(q.Name, "%s", text)
		return
	}
	p.head("  %s", q.Name)
	p.line("", "%s", text)
}

func (r *Report) printNegotiation(p *page) {
	if len(r.RTR) > 0 {
		p.head("RTR indications: offered, answered")
	}
	for _, a := range r.RTR {
		answer := string(a.Outcome)
		if a.Answered != "" {
			answer = a.Answered
			if !a.FlagA {
				answer = "A=0"
			}
		}
		p.line(a.Offered, "%s", answer)
	}
	r.printDepths(p)
}

func (r *Report) printDepths(p *page) {
	switch {
	case len(r.Depths) > 0:
		p.head("IRD and ORD: asked for both, answered")
	case r.Limits != nil:
		p.head("IRD and ORD")
	}
	for _, d := range r.Depths {
		answer := string(d.Outcome)
		if d.IRD != "" {
			answer = fmt.Sprintf("IRD %s, ORD %s", d.IRD, d.ORD)
		}
		p.line(d.Asked, "%s", answer)
	}
	if l := r.Limits; l != nil {
		p.line("its IRD", "%s", l.IRD)
		p.line("its ORD", "%s", l.ORD)
		if l.Unnegotiated != "" {
			p.line("", "%s", l.Unnegotiated)
		}
	}
}

func (r *Report) printBits(p *page) {
	p.head("Markers, CRC and the rest")
	for _, q := range []*Question{r.Bits.Markers, r.Bits.NoCRC, r.Bits.Reserved, r.Bits.R} {
		p.question(q)
	}
	if d := r.PrivateData; d.Allowed > 0 {
		over := ""
		if d.Over != "" {
			over = fmt.Sprintf("; with one more: %s", d.Over)
		}
		p.line("Private data", "at most %d octets of %d%s", d.Most, d.Allowed, over)
	}
	r.printFPDU(p, "Zero-length Read", r.FirstFPDUs.Plain)
	r.printFPDU(p, "same, with markers", r.FirstFPDUs.Markers)
	p.question(r.InTwo)
	p.question(r.Glued)
	if q := r.NoRequest; q != nil {
		p.line("No Request", "%s after %.1f s", q.Outcome, q.Milliseconds/1e3)
	}
}

func (r *Report) printFPDU(p *page, label string, a *FPDUAnswer) {
	if a == nil {
		return
	}
	text := a.Outcome
	if a.Answer != "" {
		text += fmt.Sprintf(": %s; CRC %s", a.Answer, a.CRC)
	}
	if a.First {
		text += "; the peer had sent before it got an FPDU"
	}
	p.line(label, "%s", text)
}

func (r *Report) printResemblance(p *page) {
	p.head("Resembles")
	for i, m := range r.Resembles {
		p.line(m.Name, "%d of %d known features", m.Same, m.Compared)
		if i > 0 && (i > 1 || r.recognized()) {
			continue
		}
		for _, d := range m.Differences {
			p.line("", "- %s", d)
		}
	}
	switch {
	case r.Preset != "":
		p.head("Use --peer %s", r.Preset)
	case r.recognized():
		p.head("No preset is needed")
	default:
		p.head("It is like none of the peers known here")
	}
}
