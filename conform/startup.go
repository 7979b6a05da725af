package conform

import (
	"strconv"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// depth is the IRD and ORD that cases ask for.
const depth = 4

// request returns a Request of the dialect that any peer takes: see [script.Request].
func (s *session) request() script.Startup { return script.Request(s.dialect(), depth) }

// replyTo returns an accepting Reply that answers a Request of the dialect: no more
// than the Request asks for.
func (s *session) replyTo(q mpa.StartupFrame) script.Startup {
	return script.Reply(s.dialect(), q, depth)
}

// peerRequest waits for the Request of an Initiator. One of another dialect than
// the session's is not what the case is about.
func (s *session) peerRequest() mpa.StartupFrame {
	s.firstKey(mpa.KeyRequest)
	q := s.frame("the Request")
	if d := q.Dialect(); d != s.dialect() {
		s.notApplicable("the peer's Request is of %v (revision %d), not of %v", d, q.Rev(), s.dialect())
	}
	return q
}

// firstKey looks whether the peer's first bytes are of the dialect.
func (s *session) firstKey(want string) {
	got := string(s.need(len(want), "the peer's first frame").Received()[:len(want)])
	other := mpa.KeyStart
	if want == mpa.KeyStart {
		other = mpa.KeyRequest[:len(want)]
	}
	if got[:len(other)] == other {
		s.notApplicable("the peer begins with %q: that is not %v", got, s.dialect())
	}
	s.want(got == want, "the key "+strconv.Quote(want), strconv.Quote(got))
}

// peerReply waits for a Reply and checks its key.
func (s *session) peerReply(expected string) mpa.StartupFrame {
	f := s.frame(expected)
	s.link.answered = f
	s.want(f.Key() == mpa.KeyReply, "the key "+strconv.Quote(mpa.KeyReply), strconv.Quote(f.Key()))
	return f
}

// peerAccepts waits for an accepting Reply. because says why it must accept.
func (s *session) peerAccepts(because string) mpa.StartupFrame {
	f := s.peerReply("an accepting Reply: " + because)
	s.want(!f.R(), "an accepting Reply: "+because, f)
	return f
}

// peerTakes is peerAccepts for a Request that may have private data of a ULP. RFC 5044, section 7.1.2, leaves it to the
// peer's application whether it rejects them: one that rejects any that it does not know breaks no rule.
func (s *session) peerTakes(q script.Startup, because string) mpa.StartupFrame {
	f := s.peerReply("an accepting Reply: " + because)
	if f.R() && len(q.ULP) > 0 && s.rejectsText() {
		s.notApplicable("the peer's application rejects private data that it does not know (R=1): iwarp rping -s -P, and rdma-core's, take any")
	}
	s.want(!f.R(), "an accepting Reply: "+because, f)
	return f
}

// rejectsText reports whether the peer rejects an ordinary Request with a few bytes of private data.
func (s *session) rejectsText() bool {
	s.reconnect()
	s.send("Request in one write, with other private data", s.withText(3).Bytes())
	return s.peerReply("a Reply").R()
}

// enter begins Full Operation with what Request and Reply have settled.
func (s *session) enter(q, r mpa.StartupFrame) {
	ours := mpa.RoleInitiator
	if s.role() == mpa.RoleInitiator {
		ours = mpa.RoleResponder
	}
	s.operate(script.TermsOf(ours, q, r))
}

// sendKey sends a Start Key, and peerKey waits for the peer's.
func (s *session) sendKey(text string, f mpa.StartKeyFields) mpa.StartKey {
	b := mpa.AppendStartKey(nil, &f)
	s.send(text, b)
	return b
}

// peerKey waits for the peer's Start Key.
func (s *session) peerKey(expected string) mpa.StartKey {
	s.firstKey(mpa.KeyStart)
	return mpa.StartKey(s.take(mpa.StartKeyLen, expected))
}

// enterKeys begins Full Operation with what two Start Keys have settled.
func (s *session) enterKeys(ours, peer mpa.StartKey) { s.operate(script.TermsOfKeys(ours, peer)) }
