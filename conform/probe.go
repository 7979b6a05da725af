package conform

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A finding is what the first questions tell of a Responder. It is empty if the cases fit it.
type finding struct {
	unspoken   string // why no case fits: it does not know the dialect
	foreign    string // what it answers, in another protocol than MPA, whatever it is asked
	unanswered string // why none is run: it answers no Request, or none whole, and every case would wait for that
	heard      bool   // it has said something
	absent     error  // why it cannot be connected
}

// probe asks a Responder in the dialect, and in another if need be. An Initiator says so itself, in every case.
func (o *Options) probe(ctx context.Context) (f finding) {
	if o.Role == mpa.RoleInitiator || o.overSCTP() {
		return f
	}
	res := o.ask(ctx, o.Dialect)
	if res.absent {
		return finding{absent: res.missing}
	}
	o.roundTrip, f.heard = res.answeredIn(), res.heard(o)
	if o.App == AppReject {
		return f
	}
	if res.echoes() && o.ask(ctx, another(o.Dialect)).echoes() {
		return finding{foreign: "our own bytes"}
	}
	if res.Verdict == Pass {
		return f
	}
	if foreign := res.describeForeign(); foreign != "" {
		return finding{foreign: foreign}
	}
	if part := res.partialAnswer(); part != "" {
		return finding{unanswered: "the peer's answer to the first Request stays incomplete: " + part}
	}
	other := o.askAnother(ctx, res)
	other.heard = f.heard
	return other
}

// askAnother asks in the other dialect what has not answered in its own.
func (o *Options) askAnother(ctx context.Context, res *Result) finding {
	switch o.Dialect {
	case mpa.DialectRFC5044:
		if !res.unanswered() {
			return finding{} // the cases will tell
		}
		return o.neither(ctx, res, o.ask(ctx, mpa.DialectRFC6581))
	case mpa.DialectRFC6581:
		if plain := o.ask(ctx, mpa.DialectRFC5044); plain.Verdict != Pass {
			return o.neither(ctx, res, plain)
		}
	}
	return finding{unspoken: fmt.Sprintf("the peer does not know the dialect %v: %s", o.Dialect, cause(res))}
}

// neither is what is found where neither of two dialects got the Reply that was asked for: only if both got nothing is
// no case run.
func (o *Options) neither(ctx context.Context, one, other *Result) finding {
	switch {
	case !one.unanswered() || !other.unanswered():
		return finding{}
	case one.silent() && other.silent():
		return o.listen(ctx)
	}
	return finding{unanswered: "the peer answers no MPA Request, neither of revision 1 nor of 2: it is not a responder, or has TLS in front of it"}
}

// listen asks a peer that seems mute once more, with a FIN after the Request: a server that waits for the end of a
// line, as one of HTTP does, then answers in its own protocol.
func (o *Options) listen(ctx context.Context) finding {
	res := o.run(ctx, Case{ID: "probe", Role: o.Role, run: func(s *session) {
		s.send("Request", s.request().Bytes())
		s.closeWrite()
		s.peerReply("a Reply")
	}})
	if foreign := res.describeForeign(); foreign != "" {
		return finding{foreign: foreign}
	}
	return finding{unanswered: "the peer answers no MPA Request: it is silent, and every case would wait for it"}
}

// another returns a dialect whose frames are others. One frame may be the same as ours by chance: a Start Key, or the
// Request of another Initiator.
func another(d mpa.Dialect) mpa.Dialect {
	if d == mpa.DialectRFC5044 {
		return mpa.DialectRFC6581
	}
	return mpa.DialectRFC5044
}

// echoes reports whether the peer has answered with what we had sent. What a Reply begins with as well is none yet.
func (r *Result) echoes() bool {
	sent, got := r.exchange()
	return len(got) > 0 && bytes.HasPrefix(sent, got) && script.Part(got, mpa.KeyReply) == ""
}

// exchange returns what was sent before the peer's first bytes, and those.
func (r *Result) exchange() (sent, got []byte) {
	for _, e := range r.Dialogue {
		switch {
		case e.Kind == Sent:
			sent = append(sent, e.Bytes...)
		case e.Kind == Received && len(e.Bytes) > 0:
			return sent, e.Bytes
		}
	}
	return sent, nil
}

// partialAnswer says how much of its answer the peer has sent, if not all, and what came then; else it is empty.
func (r *Result) partialAnswer() string {
	sent, got := r.exchange()
	part := script.Part(got, wording.If(bytes.HasPrefix(sent, []byte(mpa.KeyStart)), mpa.KeyStart, mpa.KeyReply))
	if part == "" {
		return ""
	}
	return part + " (expected " + r.Expected + ", got " + r.Got + ")"
}

// unanswered reports whether the peer was asked, and has said nothing.
func (r *Result) unanswered() bool {
	sent, got := r.exchange()
	return len(sent) > 0 && len(got) == 0
}

// silent reports whether the peer has not done anything either.
func (r *Result) silent() bool {
	return r.unanswered() && !slices.ContainsFunc(r.Dialogue, func(e Entry) bool { return e.Kind == Saw })
}

// describeForeign describes what the peer has said first, if that is not MPA.
func (r *Result) describeForeign() string {
	for _, e := range r.Dialogue {
		if e.Kind == Received && len(e.Bytes) > 0 {
			if mpa.BeginsAsKey(e.Bytes) {
				return ""
			}
			return fmt.Sprintf("%s: %q", mpa.DescribeStartup(e.Bytes), e.Bytes[:min(len(e.Bytes), 32)])
		}
	}
	return ""
}

func cause(res *Result) string {
	if res.Verdict == Fail {
		return "expected " + res.Expected + ", got " + res.Got
	}
	return res.Why
}

// ask sends a Request of a dialect.
func (o *Options) ask(ctx context.Context, d mpa.Dialect) *Result {
	other := *o
	other.Dialect = d
	res := other.run(ctx, Case{ID: "probe", Role: o.Role, run: probe})
	return &res
}

// probe looks for an answer in the dialect, however faulty.
func probe(s *session) {
	if s.dialect() == mpa.DialectStartKey {
		s.sendKey("Start Key", mpa.StartKeyFields{C: true})
		s.peerKey("a Start Key")
		return
	}
	q := s.request()
	if s.dialect() == mpa.DialectRtr {
		q.Res = 1 // some peers repeat all bits that they do not know, S among them
	}
	s.send("Request", q.Bytes())
	r := s.peerReply("a Reply")
	switch s.dialect() {
	case mpa.DialectRtr:
		s.want(r.Rev() == 1 && r.S() && r.Res() == 0, "a Reply of revision 1 with S=1 and reserved bits zero", r)
	case mpa.DialectRevision0:
		s.want(r.Rev() == 0 && !r.R(), "an accepting Reply of revision 0", r)
	}
}
