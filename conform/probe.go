package conform

import (
	"bytes"
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

// probe returns why a Responder's cases do not fit it: that it does not know the
// dialect; empty if it does. An Initiator says so itself, in every case. A peer that answers in
// another protocol than MPA does so whatever it is asked: then foreign says what it answered. One that answers
// nothing, in neither revision, and keeps the connection, is mute: every case would wait for it.
func (o *Options) probe(ctx context.Context) (unspoken, foreign string, mute bool) {
	if o.Role == mpa.RoleInitiator || o.overSCTP() {
		return "", "", false
	}
	res := o.ask(ctx, o.Dialect)
	o.roundTrip = res.answeredIn()
	if o.App == AppReject {
		return "", "", false
	}
	if res.echoes() && o.ask(ctx, another(o.Dialect)).echoes() {
		return "", "our own octets", false
	}
	if res.Verdict == Pass {
		return "", "", false
	}
	if foreign := res.foreign(); foreign != "" {
		return "", foreign, false
	}
	switch o.Dialect {
	case mpa.DialectRFC5044:
		return o.listen(ctx, res.silent() && o.ask(ctx, mpa.DialectRFC6581).silent()) // else the cases will tell
	case mpa.DialectRFC6581:
		if plain := o.ask(ctx, mpa.DialectRFC5044); plain.Verdict != Pass {
			return o.listen(ctx, res.silent() && plain.silent())
		}
	}
	return fmt.Sprintf("the peer does not know the dialect %v: %s", o.Dialect, cause(res)), "", false
}

// listen asks a peer that seems mute once more, with a FIN after the Request: a server that waits for the end of a line, as one
// of HTTP does, then answers in its own protocol.
func (o *Options) listen(ctx context.Context, silent bool) (unspoken, foreign string, mute bool) {
	if !silent {
		return "", "", false
	}
	res := o.run(ctx, Case{ID: "probe", Role: o.Role, run: func(s *session) {
		s.send("Request", s.request().Octets())
		s.closeWrite()
		s.peerReply("a Reply")
	}})
	if foreign := res.foreign(); foreign != "" {
		return "", foreign, false
	}
	return "", "", true
}

// another returns a dialect whose frames are others. One frame may be the same as ours by chance: a Start Key, or the Request of
// another Initiator.
func another(d mpa.Dialect) mpa.Dialect {
	if d == mpa.DialectRFC5044 {
		return mpa.DialectRFC6581
	}
	return mpa.DialectRFC5044
}

// echoes reports whether the peer has answered with what we had sent.
func (r *Result) echoes() bool {
	var sent []byte
	for _, e := range r.Dialogue {
		switch {
		case e.Kind == Sent:
			sent = append(sent, e.Octets...)
		case e.Kind == Received && len(e.Octets) > 0:
			return bytes.HasPrefix(sent, e.Octets)
		}
	}
	return false
}

// silent reports whether the peer was there, and neither said nor did anything.
func (r *Result) silent() bool {
	sent := false
	for _, e := range r.Dialogue {
		if e.Kind == Received || e.Kind == Saw {
			return false
		}
		sent = sent || e.Kind == Sent
	}
	return sent
}

// foreign describes what the peer has said first, if that is not MPA.
func (r *Result) foreign() string {
	for _, e := range r.Dialogue {
		if e.Kind == Received && len(e.Octets) > 0 {
			if mpa.BeginsAsKey(e.Octets) {
				return ""
			}
			return fmt.Sprintf("%s: %q", mpa.DescribeStartup(e.Octets), e.Octets[:min(len(e.Octets), 32)])
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
	s.send("Request", q.Octets())
	r := s.peerReply("a Reply")
	switch s.dialect() {
	case mpa.DialectRtr:
		s.want(r.Rev() == 1 && r.S() && r.Res() == 0, "a Reply of revision 1 with S=1 and reserved bits zero", r)
	case mpa.DialectRevision0:
		s.want(r.Rev() == 0 && !r.R(), "an accepting Reply of revision 0", r)
	}
}
