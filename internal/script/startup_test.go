package script_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// TestAnswerEnhanced: what accepts a Request can be kept by both ends, a Read as RTR indication above all, which takes an IRD.
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
