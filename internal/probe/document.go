package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// Report returns the report in all its forms. JUnit has a case for whether the peer
// speaks MPA, and one for each question, none of which has a wrong answer.
func (r *Report) Report() *report.Documented { return report.Of(r.document(), r) }

func (r *Report) document() *report.Document {
	return &report.Document{
		Tool: "probe", Title: Title(r.Peer, r.Network), Peer: r.Peer,
		Stopped: stopped(r.Stopped, r.Incomplete, r.OutOfTime, r.Interrupted), Interrupted: r.Interrupted,
		Sections: []report.Section{
			r.summary(), r.answers(), indicationAnswers(r.RTR), r.depthAnswers(), r.rest(), r.resemblances(),
			{Head: r.advice()}, {Checks: r.checks()},
		},
	}
}

// section is one that grows line by line.
type section struct{ report.Section }

func (s *section) line(label, format string, args ...any) {
	s.Lines = append(s.Lines, report.Line{Label: label, Text: fmt.Sprintf(format, args...)})
}

func (s *section) question(q *Question) {
	if q == nil {
		return
	}
	text := q.Outcome.with(q.Answer)
	if q.Then != None {
		text += ", then " + q.Then.String()
	}
	s.line(q.Name, "%s", text)
}

// with is an outcome with the answer in words, if there is one.
func (o Outcome) with(answer string) string {
	if answer == "" {
		return o.String()
	}
	return o.String() + ": " + answer
}

// Title is that of a report on a peer that is asked over a network.
func Title(peer, over string) string {
	return fmt.Sprintf("%v %s over %s", mpa.RoleResponder, peer, over)
}

// stopped is why the questions ended before the last one.
func stopped(by *Stop, incomplete, outOfTime, interrupted bool) string {
	switch {
	case by != nil:
		return by.String()
	case interrupted:
		return "interrupted"
	case outOfTime:
		return "the time was over"
	case incomplete:
		return "nobody was there any more"
	}
	return ""
}

func (r *Report) summary() report.Section {
	var s section
	s.Head = fmt.Sprintf("%s: %s asked", r.Peer, wording.Count(len(r.Questions), "question"))
	s.presence(r.Away, r.Stopped)
	s.notAsked(r.NotAsked, whyNotAsked(r.Stopped, r.OutOfTime, r.Interrupted))
	names := make([]string, len(r.Dialects))
	for i, d := range r.Dialects {
		names[i] = d.String()
	}
	switch {
	case r.Echo:
		s.line("Dialects", "none: the peer sends our own bytes back: this is not MPA")
		return s.Section
	case r.NotMPA:
		s.line("Dialects", "none: this is not MPA")
		return s.Section
	case len(names) == 0 && r.Interrupted:
		s.line("Dialects", "not known")
		return s.Section
	case len(names) == 0 && r.Part() != "":
		s.line("Dialects", "not known: no answer came whole")
		return s.Section
	case len(names) == 0:
		s.line("Dialects", "none that iwarp knows: no Request was answered")
		return s.Section
	}
	s.line("Dialects", "%s%s", strings.Join(names, ", "), wording.If(r.Incomplete, ", as far as it was asked", ""))
	kind := "not known"
	if r.Kind != 0 {
		kind = r.Kind.String()
	}
	s.line("Kind of RNIC", "%s: %s", kind, r.KindReason)
	s.line("Markers", "%s", r.Markers)
	s.line("CRC", "%s", r.CRC)
	return s.Section
}

// presence says when the peer was not there.
func (s *section) presence(away []Absence, stop *Stop) {
	for _, a := range away {
		s.line("Away", "for %.1f s, at %s, which was asked again then",
			report.OfMilliseconds(a.Milliseconds).Seconds(), a.Question)
	}
	if stop != nil {
		s.line("No answer", "to %s, nor again to what was answered first: %s", stop.At, stop.Why)
	}
}

// notAsked has the questions that were not asked.
func (s *section) notAsked(names []string, why string) {
	if len(names) > 0 {
		s.line("Not asked", "%s, as %s: %s", wording.Count(len(names), "question"), why,
			strings.Join(names, "; "))
	}
}

func whyNotAsked(stop *Stop, outOfTime, interrupted bool) string {
	switch {
	case stop != nil:
		return "the peer stopped answering"
	case interrupted:
		return "there was an interrupt"
	case outOfTime:
		return "the time was over"
	}
	return "nothing was answered"
}

func (r *Report) answers() report.Section {
	s := section{report.Section{Head: "How Requests are answered"}}
	v := &r.Revisions
	for _, q := range []*Question{
		v.One, v.OneSMBDirect, v.TwoPeerToPeer, v.TwoClientServer, v.TwoPlain, v.ThreeEnhanced, v.ThreePlain,
		v.Zero, v.RtrFrame, v.StartKey,
	} {
		s.question(q)
	}
	if r.EchoesReserved && v.RtrFrame.replied() && v.RtrFrame.reply.S() {
		s.line("", "(S in revision 1 means nothing here: reserved bits are echoed)")
	}
	return s.Section
}

func indicationAnswers(answers []RTRAnswer) report.Section {
	var s section
	if len(answers) > 0 {
		s.Head = "RTR indications: offered, answered"
	}
	for _, a := range answers {
		answer := a.Outcome.String()
		if a.Answered != "" {
			answer = a.Answered
			if !a.FlagA {
				answer = "A=0"
			}
		}
		s.line(a.Offered, "%s", answer)
	}
	return s.Section
}

func (r *Report) depthAnswers() report.Section {
	s := section{depthLines(r.Depths)}
	if len(r.Depths) == 0 && r.Limits != nil {
		s.Head = "IRD and ORD"
	}
	if l := r.Limits; l != nil {
		s.line("its IRD", "%s", l.IRD)
		s.line("its ORD", "%s", l.ORD)
		if l.Unnegotiated != "" {
			s.line("", "%s", l.Unnegotiated)
		}
	}
	return s.Section
}

// depthLines has what was answered to depths.
func depthLines(answers []DepthAnswer) report.Section {
	var s section
	if len(answers) > 0 {
		s.Head = "IRD and ORD: asked for both, answered"
	}
	for _, d := range answers {
		answer := d.Outcome.String()
		if d.Depths != nil {
			answer = fmt.Sprintf("IRD %v, ORD %v", d.IRD, d.ORD)
		}
		s.line(d.Asked.String(), "%s", answer)
	}
	return s.Section
}

// rest is what was found of markers, CRC and limits.
func (r *Report) rest() report.Section {
	var s section
	for _, q := range []*Question{r.Bits.Markers, r.Bits.NoCRC, r.Bits.Reserved, r.Bits.R} {
		s.question(q)
	}
	if d := r.PrivateData; d.Allowed > 0 {
		over := ""
		if d.Over != None {
			over = fmt.Sprintf("; with one more: %v", d.Over)
		}
		s.line("Private data", "at most %d bytes of %d%s", d.Most, d.Allowed, over)
	}
	s.fpdu("Zero-length Read", r.FirstFPDUs.Plain)
	s.fpdu("same, with markers", r.FirstFPDUs.Markers)
	s.extensions(r.Extensions)
	s.question(r.InTwo)
	s.question(r.Glued)
	if q := r.NoRequest; q != nil {
		s.line("No Request", "%v after %.1f s", q.Outcome, q.took().Seconds())
	}
	if len(s.Lines) > 0 {
		s.Head = "Markers, CRC and the rest"
	}
	return s.Section
}

func (s *section) fpdu(label string, a *FPDUAnswer) {
	if a == nil {
		return
	}
	text := a.Outcome.String()
	if a.Answer != "" {
		text += fmt.Sprintf(": %s; CRC %s", a.Answer, a.CRC)
	}
	if a.First {
		text += "; the peer had sent before it got an FPDU"
	}
	s.line(label, "%s", text)
}

func (r *Report) resemblances() report.Section {
	if len(r.Resembles) == 0 {
		return report.Section{}
	}
	s := section{report.Section{Head: "Resembles"}}
	for i, m := range r.Resembles {
		s.line(m.Name, "%d of %d known features", m.Same, m.Compared)
		if i > 0 && (i > 1 || r.recognized()) {
			continue
		}
		for _, d := range m.Differences {
			s.line("", "- %s", d)
		}
	}
	return s.Section
}

// advice says what to do about the peer.
func (r *Report) advice() string {
	switch {
	case r.NotMPA:
		return "Another protocol is spoken there"
	case len(r.Dialects) == 0 && r.Interrupted:
		return ""
	case len(r.Dialects) == 0 && r.Part() != "":
		return "The peer begins to answer as MPA does, and does not end, or not within --timeout"
	case len(r.Dialects) == 0:
		return "Nothing there speaks MPA as a responder, or it takes no Request like these, or has TLS in front of it"
	case r.Stopped != nil:
		return stopAdvice
	case r.Incomplete:
		return "Little follows from this, as not all was asked: ask again, to the end"
	case r.Preset != "":
		return "Use --peer " + r.Preset
	case r.recognized():
		return "No preset is needed"
	}
	return "It is like none of the peers known here"
}

// stopAdvice is for a peer that has stopped answering.
const stopAdvice = "The peer stopped answering, so that little follows from this: see in its log what has ended it, start it again, and ask again"

// speaks is the one check that can fail: whether the peer speaks the protocol. got is what there was if it does not,
// which is not known of one that was not asked to the end.
func speaks(name, document, expected string, ok, interrupted bool, got string) report.Check {
	switch {
	case ok:
		return report.Check{Name: name, Document: document, Verdict: "pass", Expected: expected}
	case interrupted:
		return report.Check{Name: name, Document: document, Status: report.Skipped,
			Verdict: "inconclusive", Why: "interrupted"}
	}
	return report.Check{Name: name, Document: document, Status: report.Failed, Verdict: "fail",
		Expected: expected, Got: got,
		Details: []report.Line{{Label: "expected:", Text: expected}, {Label: "got:", Text: got}}}
}

// checks has the one thing that can be wrong, and all questions.
func (r *Report) checks() []report.Check {
	got := cmp.Or(r.Part(), wording.If(r.NotMPA, "another protocol", "no answer"))
	all := []report.Check{speaks("speaks MPA", "RFC 5044 7.1", "a startup frame",
		len(r.Dialects) > 0, r.Interrupted, got)}
	for _, q := range r.Questions {
		c := report.Check{
			Group: "questions", Name: q.Name, Verdict: q.Outcome.String(), Why: q.Answer, Took: q.took(),
			Dialogue: dialogue(cmp.Or(q.Sent, q.Name), q.Outcome, q.Answer, q.Then, q.took()),
		}
		if q.StillThere {
			c.Details = []report.Line{{Label: "control question", Text: "answered"}}
		}
		all = append(all, c)
	}
	return append(withExample(all), unasked(r.NotAsked, whyNotAsked(r.Stopped, r.OutOfTime, r.Interrupted))...)
}

// dialogue is a question, how it was answered after what time, and what came of the connection then.
func dialogue(sent string, outcome Outcome, answer string, then Outcome, took time.Duration) []report.Step {
	all := []report.Step{{Mark: report.Sent, Kind: "startup", Text: sent},
		{At: took, Mark: report.Received, Kind: "startup", Text: outcome.with(answer)}}
	switch outcome {
	case Silent:
		all[1].Mark, all[1].Kind = report.Saw, ""
	case Closed, Reset, Aborted:
		all[1].Mark, all[1].Kind = report.Saw, "tcp"
	}
	if then != None {
		all = append(all, report.Step{At: took, Mark: report.Saw, Text: "then: " + then.String()})
	}
	return all
}

// withExample gives the first check, if it failed, the dialogue of the question with the longest answer, which shows why.
func withExample(all []report.Check) []report.Check {
	if all[0].Status != report.Failed || len(all) == 1 {
		return all
	}
	telling := slices.MaxFunc(all[1:], func(a, b report.Check) int { return cmp.Compare(len(a.Why), len(b.Why)) })
	all[0].Dialogue = telling.Dialogue
	return all
}

// unasked are checks for the questions that were not asked.
func unasked(names []string, why string) (all []report.Check) {
	for _, name := range names {
		all = append(all, report.Check{Group: "questions", Name: name, Status: report.Skipped,
			Verdict: "not asked", Why: why})
	}
	return all
}
