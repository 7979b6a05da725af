package conform

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

// probe returns why a Responder's cases do not fit it: that it does not know the
// dialect; empty if it does. An Initiator says so itself, in every case. A peer that answers in
// another protocol than MPA does so whatever it is asked: then foreign says what it answered.
func (o *Options) probe(ctx context.Context) (unspoken, foreign string) {
	if o.Role == mpa.RoleInitiator || o.App == AppReject || o.SCTP != "" {
		return "", ""
	}
	c := Case{ID: "probe", Role: o.Role, run: probe}
	res := o.run(ctx, c)
	if res.Verdict == Pass {
		return "", ""
	}
	if foreign := res.foreign(); foreign != "" {
		return "", foreign
	}
	if o.Dialect == mpa.DialectRFC5044 || o.Dialect == mpa.DialectRFC6581 && !o.plain(ctx) {
		return "", "" // the cases will tell
	}
	return fmt.Sprintf("the peer does not know the dialect %v: %s", o.Dialect, cause(&res)), ""
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

// plain reports whether the peer takes a Request of RFC 5044.
func (o *Options) plain(ctx context.Context) bool {
	simple := *o
	simple.Dialect = mpa.DialectRFC5044
	res := simple.run(ctx, Case{ID: "probe", Role: o.Role, run: probe})
	return res.Verdict == Pass
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
