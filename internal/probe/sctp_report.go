package probe

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// An SCTPReport is what was asked over SCTP, and what follows from the answers.
type SCTPReport struct {
	report.Stamp

	Peer    string `json:"peer"`
	Network string `json:"network"` // "sctp"
	// Incomplete: the peer was gone before the last question.
	Incomplete bool `json:"incomplete,omitempty"`
	// Stopped, Away and NotAsked are as in Report.
	Stopped  *Stop     `json:"stopped,omitempty"`
	Away     []Absence `json:"away,omitempty"`
	NotAsked []string  `json:"not_asked,omitempty"`
	// OutOfTime: SCTPConfig.Limit was over before it.
	OutOfTime bool `json:"out_of_time,omitempty"`
	// Interrupted: the context ended before it.
	Interrupted bool `json:"interrupted,omitempty"`

	// Setup is what the peer's INIT ACK says, nil if it has answered none.
	Setup *SetupAnswer `json:"setup,omitempty"`
	// Sessions are the answers to the ways to ask for a session.
	Sessions struct {
		Plain        *SessionQuestion `json:"plain,omitempty"`
		PeerToPeer   *SessionQuestion `json:"enhanced_peer_to_peer,omitempty"`
		ClientServer *SessionQuestion `json:"enhanced_client_server,omitempty"`
	} `json:"sessions"`
	// Indications are the answers to an INIT with no Adaptation Layer Indication, and to one with
	// another.
	Indications struct {
		None  *SessionQuestion `json:"none,omitempty"`
		Other *SessionQuestion `json:"other,omitempty"`
	} `json:"indications"`
	RTR    []RTRAnswer   `json:"rtr,omitempty"`
	Depths []DepthAnswer `json:"depths,omitempty"`
	// PrivateData are the answers to 512 bytes of it, and to 513.
	PrivateData struct {
		Most *SessionQuestion `json:"most,omitempty"`
		Over *SessionQuestion `json:"over,omitempty"`
	} `json:"private_data"`
	// Odd are the answers to what no active end says.
	Odd struct {
		Unknown *SessionQuestion `json:"unknown_function,omitempty"`
		Segment *SessionQuestion `json:"segment_first,omitempty"`
		Ordered *SessionQuestion `json:"ordered,omitempty"`
	} `json:"odd"`
	Second *SessionQuestion `json:"second_session,omitempty"`

	// Questions are all that was asked, in order.
	Questions []*SessionQuestion `json:"questions,omitempty"`
}

// A SetupAnswer is what the peer's INIT ACK says.
type SetupAnswer struct {
	Out        uint16  `json:"streams_out"`
	In         uint16  `json:"streams_in"`
	Indication *uint32 `json:"indication,omitempty"`
}

// A SessionQuestion is one association, and what came of it.
type SessionQuestion struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Answer  string  `json:"answer,omitempty"` // in words
	// Then is how the peer ends a session that it has accepted.
	Then Outcome `json:"then,omitempty"`
	// Associated: the association was opened, though its INIT was not one of DDP.
	Associated   bool    `json:"associated,omitempty"`
	Milliseconds float64 `json:"ms"`

	asked, answered *mpa.Enhanced
}

func (q *SessionQuestion) outcome() Outcome { return q.Outcome }

// isAnswered reports whether the peer has said something in the session that is a session control message, and has not
// gone silent after that: it is there.
func (q *SessionQuestion) isAnswered() bool {
	switch q.Outcome {
	case Accepted, Rejected, Terminated:
		return q.Then != Silent
	}
	return false
}

// isEnhanced reports whether the answer had enhanced data.
func (q *SessionQuestion) isEnhanced() bool { return q != nil && q.answered != nil }

// setup notes what an INIT ACK says.
func (r *SCTPReport) setup(s *chunk.Setup) {
	r.Setup = &SetupAnswer{Out: s.Out, In: s.In}
	if s.HasAdaptation {
		r.Setup.Indication = &s.Adaptation
	}
}

// Speaks reports whether the peer takes part in DDP sessions: it has answered an Initiate.
func (r *SCTPReport) Speaks() bool {
	for _, q := range []*SessionQuestion{r.Sessions.Plain, r.Sessions.PeerToPeer, r.Sessions.ClientServer} {
		if q != nil && (q.Outcome == Accepted || q.Outcome == Rejected || q.Outcome == Terminated) {
			return true
		}
	}
	return false
}

// Report returns the report in all its forms.
func (r *SCTPReport) Report() *report.Documented { return report.Of(r.document(), r) }

func (r *SCTPReport) document() *report.Document {
	return &report.Document{
		Tool: "probe", Title: Title(r.Peer, r.Network), Peer: r.Peer,
		Stopped: stopped(r.Stopped, r.Incomplete, r.OutOfTime, r.Interrupted), Interrupted: r.Interrupted,
		Sections: []report.Section{
			r.summary(), r.answers(), indicationAnswers(r.RTR), depthLines(r.Depths), r.rest(),
			{Head: r.advice()}, {Checks: r.checks()},
		},
	}
}

func (s *section) session(q *SessionQuestion) {
	if q == nil {
		return
	}
	text := q.Outcome.with(q.Answer)
	switch {
	case q.Then == Terminated:
		text += "; it ends with a Terminate"
	case q.Then != None:
		text += ", and our Terminate: " + q.Then.String()
	}
	if q.Associated {
		text += " (in an association that it should have refused)"
	}
	s.line(q.Name, "%s", text)
}

func (r *SCTPReport) summary() report.Section {
	var s section
	s.Head = fmt.Sprintf("%s: %s asked over SCTP in UDP", r.Peer, wording.Count(len(r.Questions), "question"))
	s.presence(r.Away, r.Stopped)
	s.notAsked(r.NotAsked, whyNotAsked(r.Stopped, r.OutOfTime, r.Interrupted))
	if u := r.Setup; u != nil {
		indication := "none"
		if u.Indication != nil {
			indication = fmt.Sprint(*u.Indication)
		}
		s.line("Streams", "%d out, %d in", u.Out, u.In)
		s.line("Indication", "%s", indication)
	}
	var kinds []string
	if q := r.Sessions.Plain; q != nil && q.Outcome == Accepted {
		kinds = append(kinds, "plain (RFC 5043)")
	}
	if r.Sessions.PeerToPeer.isEnhanced() || r.Sessions.ClientServer.isEnhanced() {
		kinds = append(kinds, "enhanced (RFC 6581)")
	}
	if len(kinds) > 0 {
		s.line("Sessions", "%s", strings.Join(kinds, ", "))
	}
	return s.Section
}

func (r *SCTPReport) answers() report.Section {
	s := section{report.Section{Head: "How sessions are answered"}}
	for _, q := range []*SessionQuestion{
		r.Sessions.Plain, r.Sessions.PeerToPeer, r.Sessions.ClientServer, r.Second,
		r.Indications.None, r.Indications.Other,
	} {
		s.session(q)
	}
	return s.Section
}

// rest is what was found beside.
func (r *SCTPReport) rest() report.Section {
	var s section
	for _, q := range []*SessionQuestion{r.PrivateData.Most, r.PrivateData.Over, r.Odd.Unknown,
		r.Odd.Segment, r.Odd.Ordered} {
		s.session(q)
	}
	if len(s.Lines) > 0 {
		s.Head = "Private data, and what nobody should say"
	}
	return s.Section
}

// advice says what to do about the peer.
func (r *SCTPReport) advice() string {
	switch {
	case r.Stopped != nil:
		return stopAdvice
	case r.Speaks():
		return "Use --network sctp"
	case r.Interrupted:
		return ""
	case r.Setup == nil:
		return "It refuses associations of DDP: its listener is one of another protocol"
	}
	return "It takes associations, and no session: nobody listens for DDP there"
}

// checks has the one thing that can be wrong, and all questions.
func (r *SCTPReport) checks() []report.Check {
	all := []report.Check{speaks("speaks DDP over SCTP", "RFC 5043 6", "an answer to an Initiate", r.Speaks(),
		r.Interrupted, "no answer")}
	for _, q := range r.Questions {
		took := report.OfMilliseconds(q.Milliseconds)
		all = append(all, report.Check{
			Group: "questions", Name: q.Name, Verdict: q.Outcome.String(), Why: q.Answer, Took: took,
			Dialogue: dialogue(q.Name, q.Outcome, q.Answer, q.Then, took),
		})
	}
	return append(withExample(all), unasked(r.NotAsked, whyNotAsked(r.Stopped, r.OutOfTime, r.Interrupted))...)
}
