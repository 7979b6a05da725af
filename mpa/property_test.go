package mpa_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/mpa"
)

func anyKind(t *rapid.T, of string) mpa.Kind {
	return rapid.SampledFrom([]mpa.Kind{0, perm, perm, nonperm, rdmac}).Draw(t, of+" kind")
}

func anyData(t *rapid.T, of string) []byte {
	n := rapid.SampledFrom([]int{0, 0, 1, 5, 13, 14, 40, 508, 509, 512}).Draw(t, of+" private data")
	return bytes.Repeat([]byte(of[:1]), n)
}

func anyTimeout(t *rapid.T, of string) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, time.Second, 30 * time.Second, -1}).Draw(t, of+" timeout")
}

func anyDialects(t *rapid.T) []mpa.Dialect {
	return rapid.OneOf(
		rapid.Just[[]mpa.Dialect](nil), rapid.Just(mpa.Dialects()),
		rapid.SliceOfNDistinct(rapid.SampledFrom(mpa.Dialects()), 0, 5, rapid.ID[mpa.Dialect]),
	).Draw(t, "served")
}

// anyScenario draws what two ends want, so that an Initiator can be made of it.
func anyScenario() *rapid.Generator[scenario] {
	return rapid.Custom(func(t *rapid.T) scenario {
		s := scenario{
			offer:  anyOffer(rapid.SampledFrom(append(mpa.Dialects(), 0)).Draw(t, "dialect")).Draw(t, "initiator"),
			answer: anyAnswer().Draw(t, "responder"),
			cfg: mpa.ResponderConfig{
				Timeout: anyTimeout(t, "responder"), Kind: anyKind(t, "responder"), Dialects: anyDialects(t),
				Messages: rapid.Bool().Draw(t, "takes messages"), Markers: rapid.Bool().Draw(t, "farewell M"),
				NoCRC: rapid.Bool().Draw(t, "farewell C"),
			},
			decision: rapid.SampledFrom([]decision{accepts, accepts, accepts, accepts, rejects,
				ignores}).Draw(t, "decision"),
		}
		s.offer.Kind, s.answer.Kind = anyKind(t, "initiator"), anyKind(t, "answering")
		s.offer.Messages = rapid.Bool().Draw(t, "messages")
		s.offer.PrivateData, s.answer.PrivateData = anyData(t, "initiator"), anyData(t, "responder")
		s.offer.Timeout = anyTimeout(t, "initiator")
		if rapid.IntRange(0, 3).Draw(t, "an ORD of its own") == 0 {
			s.insist = anyDepth().Draw(t, "insist")
		}
		return s
	})
}

// Proves Q02, Q07, Q09-Q13, Q16, K02, K03, K07, T01, T03, T04, N02, N03, N05, N06, E02-E08,
// E10, F11, F14: whatever
// the two ends want, and however their bytes are split and interleaved, what comes of it is what the documents
// say, at both ends.
func TestAnyPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyScenario().Draw(t, "scenario")
		v := s.play(t, func(can []string) (string, int, time.Duration) {
			return rapid.SampledFrom(can).Draw(t, "step"), rapid.SampledFrom([]int{1, 3, 20, 1000}).Draw(t, "bytes"), 0
		})
		if v != nil {
			s.judge(t, v, s.outcome())
		}
	})
}

// Proves Q12, Q13, Q16: the same where bytes take their time: then a deadline may pass at
// either end, and both
// ends hear of it, or the connection comes up all the same.
func TestAnyPairWithDelays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyScenario().Draw(t, "scenario")
		delay := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Just(time.Duration(0)),
			rapid.Map(rapid.IntRange(1, 12000), func(ms int) time.Duration {
				return time.Duration(ms) * time.Millisecond
			}))
		v := s.play(t, func(can []string) (string, int, time.Duration) {
			return rapid.SampledFrom(can).Draw(t, "step"),
				rapid.SampledFrom([]int{7, 20, 1000}).Draw(t, "bytes"), delay.Draw(t, "delay")
		})
		if v == nil {
			return
		}
		if failedLate(v.i.err) || failedLate(v.r.err) {
			s.judgeLate(t, v)
			return
		}
		s.judge(t, v, s.outcome())
	})
}

func failedLate(err error) bool {
	var e *mpa.StartupError
	return errors.As(err, &e) && e.Timeout()
}

// play runs a scenario to its end, or returns nil if there is no Initiator for it.
func (s *scenario) play(t *rapid.T, pick func(can []string) (string, int, time.Duration)) *virtual {
	t.Helper()
	i, err := mpa.NewInitiator(s.offer)
	if !s.legal() {
		if !errors.Is(err, mpa.ErrOffer) {
			t.Fatalf("%+v: %v", s.offer, err)
		}
		return nil
	}
	if err != nil {
		t.Fatalf("%+v: %v", s.offer, err)
	}
	v := newVirtual(i, mpa.NewResponder(s.cfg), s.answer, s.decision)
	v.insist = s.insist
	v.run(pick)
	if v.wrong != nil {
		t.Fatal(v.wrong)
	}
	return v
}

// judge compares what came of it with what the documents say.
func (s *scenario) judge(t rapid.TB, v *virtual, w want) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("want %+v, got up %v/%v, %v / %v", w, v.i.open, v.r.open, v.i.err, v.r.err)
		}
	}()
	hung := !v.i.over && !v.i.m.Done() && v.i.m.Want() > 0
	switch {
	case hung && !w.hang:
		t.Errorf("the Initiator waits for ever: deadline %v", v.i.m.Deadline())
	case hung:
	case w.up:
		s.judgeUp(t, v, w)
	case w.rejected:
		s.judgeRejected(t, v)
	default:
		wantFailure(t, "Initiator", v.i.err, w.initiator)
		wantFailure(t, "Responder", v.r.err, w.responder)
		var e *mpa.StartupError
		if errors.As(v.i.err, &e) && e.Fallback != (s.dialect() == mpa.DialectRFC6581 &&
			slices.Contains([]mpa.Failure{mpa.FailureMismatch, mpa.FailureClosed}, e.Failure)) {
			t.Errorf("Fallback %v: %v", e.Fallback, e)
		}
	}
	if !hung && !(v.i.over || v.i.open) || !(v.r.over || v.r.open) && v.decision != ignores && !w.hang {
		t.Error("an end is neither up nor over")
	}
}

// judgeLate is for a deadline that passed: nobody is left behind who waits or does
// not know.
func (s *scenario) judgeLate(t rapid.TB, v *virtual) {
	t.Helper()
	var closed *mpa.RejectError
	for name, e := range map[string]*end{"Initiator": v.i, "Responder": v.r} {
		switch {
		case errors.As(e.err, &closed) && closed.Closed && s.message() && e == v.i: // it cannot tell
		case e == v.r && v.rejected && e.err == nil: // its consumer knows
		case !e.over:
			t.Errorf("the %s is not over, and the other end is: %v, %v", name, v.i.err, v.r.err)
		default:
			wantFailure(t, name, e.err, failures{
				mpa.FailureTimeout, mpa.FailureClosed, mpa.FailureRevision, mpa.FailureMismatch,
				mpa.FailureKey, mpa.FailureDialect,
			})
		}
	}
}

// wantFailure expects a failure of a kind, or none if there are none, with a cause
// and a remedy.
func wantFailure(t rapid.TB, name string, err error, of failures) {
	t.Helper()
	var e *mpa.StartupError
	switch {
	case len(of) == 0:
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	case !errors.As(err, &e) || !slices.Contains(of, e.Failure):
		t.Errorf("%s: %v, want %v", name, err, of)
	case e.Err.Reason == "" || e.Err.Hint == "" || !strings.HasPrefix(e.Error(), "mpa: startup as "+name+": "):
		t.Errorf("%s without cause or remedy: %v", name, e)
	case e.Err.Code != mpa.CodeConnectionLost && e.Err.Code != mpa.CodeStartupFrame:
		t.Errorf("%s: code %d: %v", name, e.Err.Code, e)
	}
}

func (s *scenario) judgeRejected(t rapid.TB, v *virtual) {
	t.Helper()
	var e *mpa.RejectError
	if !errors.As(v.i.err, &e) || v.r.err != nil {
		t.Fatalf("not rejected: %v, %v", v.i.err, v.r.err)
	}
	data := s.answer.PrivateData
	if len(data) > room(s.served(), s.message()) {
		data = nil
	}
	closed := s.message() || s.unservedReply()
	if !bytes.Equal(e.PrivateData, data) || e.Closed != closed || s.message() == v.responder().KeepsTCP() {
		t.Errorf("%+v", e)
	}
	if e.Enhanced != (s.served() == mpa.DialectRFC6581) || e.Error() == "" {
		t.Errorf("%+v", e)
	}
}

// judgeUp compares what both ends negotiated.
func (s *scenario) judgeUp(t rapid.TB, v *virtual, w want) {
	t.Helper()
	i, r := v.i.m.Negotiated(), v.r.m.Negotiated()
	if code := i.TerminateCode; code != 0 {
		if v.r.open && string(v.r.inbox) != terminate || r.TerminateCode != 0 {
			t.Errorf("the Responder got %q", v.r.inbox)
		}
		s.judgeEnhanced(t, v, &i, &r)
		return
	}
	if !v.i.up(fpduOfResponder) || !v.r.up(fpduOfInitiator) {
		t.Fatalf("not up: %v, %v", v.i.err, v.r.err)
	}
	type terms struct {
		Dialect                        mpa.Dialect
		RevisionI, RevisionR, DDP, RDM uint8
		ToI, ToR, CRC, First           bool
		DataI, DataR                   string
	}
	always := w.dialect == mpa.DialectRevision0
	keyed := func(k mpa.Kind) bool { return always || k == rdmac && w.dialect == mpa.DialectStartKey }
	kind := s.answer.Kind
	if kind == 0 {
		kind = s.cfg.Kind
	}
	expect := terms{
		w.dialect, firstFrames[s.dialect()].rev, replyRevision[w.dialect], versionOf[w.dialect], versionOf[w.dialect],
		s.offer.Markers || keyed(s.offer.Kind), s.answer.Markers || keyed(kind), !s.offer.NoCRC || !s.answer.NoCRC ||
			keyed(s.offer.Kind) || keyed(kind),
		w.dialect == mpa.DialectRtr, string(s.offer.PrivateData), string(s.answer.PrivateData),
	}
	ours := terms{
		i.Dialect, i.Revision, i.PeerRevision, i.DDPVersion, i.RDMAPVersion,
		i.MarkersReceive, i.MarkersSend, i.CRC, r.SendFirst, string(r.PrivateData), string(i.PrivateData),
	}
	theirs := terms{
		r.Dialect, r.PeerRevision, r.Revision, r.DDPVersion, r.RDMAPVersion,
		r.MarkersSend, r.MarkersReceive, r.CRC, r.SendFirst, string(r.PrivateData), string(i.PrivateData),
	}
	if ours != expect || theirs != expect || !i.SendFirst || i.Role != mpa.RoleInitiator ||
		r.Role != mpa.RoleResponder {
		t.Errorf("got\n%+v\n%+v\nwant\n%+v", ours, theirs, expect)
	}
	s.judgeEnhanced(t, v, &i, &r)
}

// replyRevision is Rev of an accepting Reply.
var replyRevision = map[mpa.Dialect]uint8{mpa.DialectRFC5044: 1, mpa.DialectRFC6581: 2, mpa.DialectRtr: 1}

// judgeEnhanced holds depths, connection model and RTR indication against RFC 6581, by
// what the Reply said.
func (s *scenario) judgeEnhanced(t rapid.TB, v *virtual, i, r *mpa.Negotiated) {
	t.Helper()
	if i.Dialect != mpa.DialectRFC6581 {
		if i.IRD != s.offer.IRD || i.ORD != s.offer.ORD || r.IRD != s.answer.IRD || r.ORD != s.answer.ORD ||
			i.Enhanced || r.Enhanced ||
			i.TerminateCode != 0 || i.RTR|r.RTR|i.OfferedRTR|r.OfferedRTR != 0 || i.PeerToPeer || r.PeerToPeer ||
			i.PeerIRD&i.PeerORD&r.PeerIRD&r.PeerORD != ulp {
			t.Errorf("nothing was negotiated: %+v, %+v", i, r)
		}
		return
	}
	f, err := mpa.ParseStartup(v.reply)
	said, ok := f.Enhanced()
	if err != nil || !ok {
		t.Fatalf("Reply % x: %v", v.reply, err)
	}
	if i.PeerIRD != said.IRD || i.PeerORD != said.ORD || r.PeerIRD != s.offer.IRD || r.PeerORD != s.offer.ORD {
		t.Errorf("as sent: %+v, %+v", i, r)
	}
	in := depth{s.answer.IRD, s.offer.ORD, said.IRD, r.IRD, i.ORD, s.answer.MaxIRD, true}
	out := depth{s.offer.IRD, s.answer.ORD, said.ORD, i.IRD, r.ORD, s.offer.MaxIRD, false}
	broken := in.holds()
	if s.insist == 0 || s.offer.IRD != ulp {
		broken += out.holds()
	}
	if broken != "" {
		t.Errorf("%s: %+v, %+v", broken, in, out)
	}
	s.judgeRTR(t, said, i, r)
}

func (s *scenario) judgeRTR(t rapid.TB, said mpa.Enhanced, i, r *mpa.Negotiated) {
	t.Helper()
	a := !s.offer.ClientServer
	offered, supported := kinds(s.offer.RTR), kinds(s.answer.RTR)
	named := said.RTR()
	common := offered & named
	tooFew := said.ORD != ulp && said.ORD > min(max(s.offer.IRD, s.offer.MaxIRD), ulp)
	var code mpa.Code
	switch {
	case a && common == 0:
		code = mpa.CodeNoMatchingRTR
	case tooFew:
		code = mpa.CodeInsufficientIRD
	}
	var bad []string
	for rule, ok := range map[string]bool{
		"A is answered with A":                  said.A == a && i.PeerToPeer == a && r.PeerToPeer == a,
		"B, C and D are 0 with A=0":             a || !said.B && !said.C && !said.D && i.RTR|r.RTR == 0,
		"at least one, and only supported ones": !a || named != 0 && named&^supported == 0 && r.RTR == named,
		"all matching ones":                     !a || offered&supported&^named == 0,
		"AllRTR names all":                      !a || !s.answer.AllRTR || named == supported,
		"one of the matching ones is sent": !a || common == 0 || i.RTR != 0 &&
			i.RTR&common == i.RTR && i.RTR&(i.RTR-1) == 0,
		"what is supported is offered":             !a || i.OfferedRTR == offered && r.OfferedRTR == offered,
		fmt.Sprintf("Terminate with %d", code):     i.TerminateCode == code && r.TerminateCode == 0,
		"a zero-length Read is answered":           !a || named&mpa.RTRRead == 0 || said.IRD > 0,
		"Send, which is visible, is a last choice": i.RTR != mpa.RTRSend || common == mpa.RTRSend,
	} {
		if !ok {
			bad = append(bad, rule)
		}
	}
	if len(bad) > 0 {
		t.Errorf("%s\nReply %v, %+v, %+v", strings.Join(bad, "; "), said, i, r)
	}
}
