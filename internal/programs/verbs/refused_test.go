//go:build linux && (amd64 || arm64)

package verbs

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// elsewhere is a GID that no peer of the tests has.
var elsewhere = GID{0xfe, 0x80, 15: 1}

// dialedAs sends the Request of a call of a QP with that GID.
func (q *queue) dialedAs(from uint32, gid GID) net.Conn {
	q.t.Helper()
	c := ulpdata.QPCall{To: q.number, From: from, GID: gid, Prefix: true}
	return q.dialedWith(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: 1,
		PrivateData: c.Append(nil)}))
}

func (q *queue) heldCalls() int {
	qp := q.inner()
	qp.linking.Lock()
	defer qp.linking.Unlock()
	return len(qp.meeting.held)
}

// refusesNow waits for the refusal of a call, which is not to be held meanwhile.
func (q *queue) refusesNow(conn net.Conn) {
	q.t.Helper()
	var answer [1]byte
	until(q.t, "an answer", func() bool {
		if q.heldCalls() > 0 {
			q.t.Fatal("the call is held")
		}
		must(q.t, errnoOf(conn.SetReadDeadline(time.Now().Add(time.Millisecond))))
		n, _ := conn.Read(answer[:])
		return n > 0
	})
}

// TestCallFromElsewhere: who calls with the number of the peer, and not with its GID, is refused.
func TestCallFromElsewhere(t *testing.T) {
	a, b := byNumber(roce(t), roce(t))
	b.meet(a.number)
	b.refuses(b.dialedAs(a.number, elsewhere))
	a.meet(b.number)
	exchange(t, a, b)
}

// TestHeldByGID: of two callers with one number and different GIDs both are held, as either may be the peer.
func TestHeldByGID(t *testing.T) {
	b := roce(t)
	b.dialedAs(1, loopback)
	b.holds(1, 1)
	b.dialedAs(1, elsewhere)
	until(t, "both calls", func() bool { return b.heldCalls() == 2 })
}

// TestCallOfDestroyed: a QP that is being destroyed holds no call.
func TestCallOfDestroyed(t *testing.T) {
	b := roce(t)
	b.inner().part(true)
	b.refusesNow(b.dialed(1))
}

// TestLinkOrphan: a QP whose ID was destroyed has a connection still, and gets no other.
func TestLinkOrphan(t *testing.T) {
	q := &QP{orphan: true}
	want(t, "another ID", q.link(new(ID)), syscall.EINVAL)
}

// TestFailureByReset: a peer that resets the connection has refused it.
func TestFailureByReset(t *testing.T) {
	e := failure(&net.OpError{Op: "read", Err: syscall.ECONNRESET})
	want(t, "event", e.Type, Rejected)
	want(t, "status", e.Status, -int32(syscall.ECONNRESET))
}
