package script_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// TestAnswerEnhanced: what accepts a Request can be kept by both ends, a Read as RTR indication above all, which takes
// an IRD.
func TestAnswerEnhanced(t *testing.T) {
	const s, w, r, none = mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead, mpa.NoNegotiation
	for _, c := range []struct {
		ask  mpa.Enhanced
		want mpa.Enhanced
	}{
		{mpa.Enhanced{IRD: 3, ORD: 2}, mpa.Enhanced{IRD: 2, ORD: 3}},
		{mpa.Enhanced{IRD: 30, ORD: 20}, mpa.Enhanced{IRD: 20, ORD: 4}},
		{mpa.Enhanced{IRD: none, ORD: none}, mpa.Enhanced{IRD: none, ORD: none}},
		{mpa.Enhanced{}.WithRTR(s | w | r), mpa.Enhanced{}.WithRTR(w)},
		{mpa.Enhanced{}.WithRTR(s | r), mpa.Enhanced{IRD: 1}.WithRTR(r)},
		{mpa.Enhanced{IRD: 5, ORD: 6}.WithRTR(r), mpa.Enhanced{IRD: 6, ORD: 4}.WithRTR(r)},
		{mpa.Enhanced{}.WithRTR(s), mpa.Enhanced{}.WithRTR(s)},
		{mpa.Enhanced{}.WithRTR(0), mpa.Enhanced{}.WithRTR(s)},
	} {
		if got := *script.AnswerEnhanced(c.ask, 4); got != c.want {
			t.Errorf("%+v is answered by %+v, want %+v", c.ask, got, c.want)
		}
	}
}

// TestFrames has the frames that any peer of a dialect takes, bit by bit.
func TestFrames(t *testing.T) {
	type fields struct {
		rev        uint8
		m, c, r, s bool
	}
	of := func(f mpa.StartupFrame) fields { return fields{f.Rev(), f.M(), f.C(), f.R(), f.S()} }
	for d, want := range map[mpa.Dialect]fields{
		mpa.DialectRFC5044: {rev: 1, c: true}, mpa.DialectRFC6581: {rev: 2, c: true, s: true},
		mpa.DialectRtr: {rev: 1, c: true, s: true}, mpa.DialectRevision0: {rev: 0, c: true, m: true},
	} {
		q := script.Request(d, 4).Bytes()
		r := script.Reply(d, q, 4).Bytes()
		if of(q) != want || of(r) != want {
			t.Errorf("%v: %+v and %+v, want %+v", d, of(q), of(r), want)
		}
	}
	for _, c := range []bool{false, true} {
		reply := mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, C: c, S: true, Rev: 1})
		if f := mpa.StartupFrame(script.RtrFrame(reply).Bytes()); f.Key() != mpa.KeyRtr ||
			of(f) != (fields{rev: 1, c: c}) {
			t.Errorf("Rtr Frame after C=%v: %v", c, f)
		}
	}
}
