//go:build linux && (amd64 || arm64)

package verbs

import (
	"slices"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// A heldCall is that of a peer that has called before the QP knows who its peer is: before RTR. After that it is one
// that has called once more, while its first call is being accepted.
type heldCall struct {
	request *iwarp.Request
	caller  ulpdata.QPCall
	expiry  *time.Timer
}

// heldAtMost is how many calls a QP holds. Any of them may be anybody's, or of a program that has ended since, so that
// the newest are held, and one of each caller.
const heldAtMost = 8

// hold keeps a call until the QP knows who its peer is, or whether that is there. The caller holds q.linking.
func (q *QP) hold(r *iwarp.Request, c *ulpdata.QPCall) {
	m := &q.meeting
	again := slices.IndexFunc(m.held, func(h heldCall) bool { return h.caller.From == c.From && h.caller.GID == c.GID })
	if again < 0 && len(m.held) == heldAtMost {
		again = 0
	}
	if again >= 0 {
		go q.device.refuseCall(q.letGo(again))
	}
	m.held = append(m.held, heldCall{r, *c, time.AfterFunc(callLimit, func() { q.forgetCaller(r) })})
}

// letGo takes a call out of those that are held. The caller holds q.linking.
func (q *QP) letGo(i int) *iwarp.Request {
	m := &q.meeting
	h := m.held[i]
	h.expiry.Stop()
	m.held = slices.Delete(m.held, i, i+1)
	return h.request
}

// greetHeld accepts the call of the peer that the QP is to have, if it is held, and refuses the others. The caller
// holds q.linking.
func (q *QP) greetHeld() {
	m := &q.meeting
	for len(m.held) > 0 {
		newest := len(m.held) - 1
		caller := m.held[newest].caller
		q.greet(q.letGo(newest), &caller)
	}
}

// forgetCaller refuses a request that was held for too long.
func (q *QP) forgetCaller(r *iwarp.Request) {
	q.linking.Lock()
	defer q.linking.Unlock()
	if i := slices.IndexFunc(q.meeting.held, func(h heldCall) bool { return h.request == r }); i >= 0 {
		go q.device.refuseCall(q.letGo(i))
	}
}
