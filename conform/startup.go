package conform

import (
	"github.com/goiwarp/iwarp/mpa"
)

// A Startup is a startup frame to be sent, with any values. PrivateData of the
// fields, if it is set, goes before Enhanced and ULP.
type Startup struct {
	mpa.StartupFields
	Enhanced *mpa.Enhanced // of RFC 6581; nil: none
	ULP      []byte        // private data behind it
}

// Octets returns the frame as it is sent.
func (f Startup) Octets() []byte {
	fields := f.StartupFields
	if fields.PrivateData == nil {
		if f.Enhanced != nil {
			fields.PrivateData = mpa.AppendEnhanced(nil, f.Enhanced)
		}
		fields.PrivateData = append(fields.PrivateData, f.ULP...)
	}
	return mpa.AppendStartup(nil, &fields)
}

// depth is the IRD and ORD that cases ask for.
const depth = 4

// Request returns a Request of the dialect that any peer takes: CRCs, no markers
// but in revision 0; in RFC 6581 peer-to-peer, with Write and Read as RTR
// indications.
func (s *Session) Request() Startup {
	f := Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyRequest, C: true}}
	switch s.Dialect() {
	case mpa.DialectRFC6581:
		f.Rev, f.S = 2, true
		f.Enhanced = &mpa.Enhanced{A: true, C: true, D: true, IRD: depth, ORD: depth}
	case mpa.DialectRtr:
		f.Rev, f.S = 1, true
	case mpa.DialectRevision0:
		f.M = true
	default:
		f.Rev = 1
	}
	return f
}

// Reply returns an accepting Reply that answers a Request of the dialect: no more
// than the Request asks for.
func (s *Session) Reply(q mpa.StartupFrame) Startup {
	f := Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: q.Rev()}}
	switch s.Dialect() {
	case mpa.DialectRFC6581:
		e, _ := q.Enhanced()
		f.S, f.Enhanced = true, answer(e)
	case mpa.DialectRtr:
		f.S = true
	case mpa.DialectRevision0:
		f.M = true
	}
	return f
}

// answer returns enhanced data that fits a Request's, with one of the RTR
// indications that it offers.
func answer(q mpa.Enhanced) *mpa.Enhanced {
	e := &mpa.Enhanced{A: q.A, IRD: q.ORD, ORD: min(q.IRD, depth)}
	if q.IRD == mpa.NoNegotiation {
		e.ORD = mpa.NoNegotiation
	}
	switch kinds := q.RTR(); {
	case kinds&mpa.RTRWrite != 0:
		e.C = true
	case kinds&mpa.RTRRead != 0:
		e.D, e.IRD = true, max(e.IRD, 1)
	case q.A:
		e.B = true
	}
	return e
}

// PeerRequest waits for the Request of an Initiator. One of another dialect than
// the Session's is not what the case is about.
func (s *Session) PeerRequest() mpa.StartupFrame {
	s.firstKey(mpa.KeyRequest)
	q := s.Frame("the Request")
	if d := dialectOf(q); d != s.Dialect() {
		s.NotApplicable("the peer's Request is of %v (revision %d), not of %v", d, q.Rev(), s.Dialect())
	}
	return q
}

// dialectOf returns the dialect of a Request.
func dialectOf(q mpa.StartupFrame) mpa.Dialect {
	switch {
	case q.Rev() == 0:
		return mpa.DialectRevision0
	case q.Rev() == 1 && q.S():
		return mpa.DialectRtr
	case q.Rev() >= 2 && q.S():
		return mpa.DialectRFC6581
	}
	return mpa.DialectRFC5044
}

// firstKey looks whether the peer's first octets are of the dialect.
func (s *Session) firstKey(want string) {
	got := string(s.need(len(want), "the peer's first frame").in[:len(want)])
	other := mpa.KeyStart
	if want == mpa.KeyStart {
		other = mpa.KeyRequest[:len(want)]
	}
	if got[:len(other)] == other {
		s.NotApplicable("the peer begins with %q: that is not %v", got, s.Dialect())
	}
	s.Want(got == want, "the key "+quote(want), quote(got))
}

// PeerReply waits for a Reply and checks its key.
func (s *Session) PeerReply(expected string) mpa.StartupFrame {
	f := s.Frame(expected)
	s.link.reply = f
	s.Want(f.Key() == mpa.KeyReply, "the key "+quote(mpa.KeyReply), quote(f.Key()))
	return f
}

// PeerAccepts waits for an accepting Reply. because says why it must accept.
func (s *Session) PeerAccepts(because string) mpa.StartupFrame {
	f := s.PeerReply("an accepting Reply: " + because)
	s.Want(!f.R(), "an accepting Reply: "+because, f)
	return f
}

// Enter begins Full Operation with what Request and Reply have settled.
func (s *Session) Enter(q, r mpa.StartupFrame) {
	ours, peer := q, r
	if s.Role() == mpa.RoleInitiator {
		ours, peer = r, q
	}
	t := Terms{MarkersSend: peer.M(), MarkersReceive: ours.M(), CRC: q.C() || r.C(), Version: 1}
	if s.Dialect() == mpa.DialectRevision0 {
		t = Terms{true, true, true, 0}
	}
	s.Operate(t)
}

// SendKey sends a Start Key, and PeerKey waits for the peer's.
func (s *Session) SendKey(text string, f mpa.StartKeyFields) mpa.StartKey {
	b := mpa.AppendStartKey(nil, &f)
	s.Send(text, b)
	return b
}

// PeerKey is described with SendKey.
func (s *Session) PeerKey(expected string) mpa.StartKey {
	s.firstKey(mpa.KeyStart)
	return mpa.StartKey(s.Octets(mpa.StartKeyLen, expected))
}

// EnterKeys begins Full Operation with what two Start Keys have settled.
func (s *Session) EnterKeys(ours, peer mpa.StartKey) {
	s.Operate(Terms{MarkersSend: peer.M(), MarkersReceive: ours.M(), CRC: ours.C() || peer.C(), Version: 0})
}
