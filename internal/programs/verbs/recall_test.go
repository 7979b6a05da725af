//go:build linux && (amd64 || arm64)

package verbs

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestMeetOften: a connection that was not used is nothing to the next of the same two QPs, whichever of them begins: a
// call that the peer has given up by RESET is not taken for its call for that.
func TestMeetOften(t *testing.T) {
	a, b := byNumber(roce(t), roce(t))
	for round := range 60 {
		a.meet(b.number)
		b.meet(a.number)
		b.again() // a may call once more, and its call be held
		a.again()
		first, second := a, b
		if round%2 == 1 {
			first, second = b, a
		}
		first.meet(second.number)
		second.meet(first.number)
		b.recv(1, b.region("....", accessLocalWrite))
		delivers(t, a, b)
		for _, q := range []*queue{a, b} {
			q.again()
		}
	}
}

// TestGivenUpCall: a call that its peer gives up is in nobody's way, before it is answered or after that, and what is
// posted stays.
func TestGivenUpCall(t *testing.T) {
	for _, answered := range []bool{false, true} {
		a, b := byNumber(roce(t), roce(t))
		b.recv(1, b.region("....", accessLocalWrite))
		conn := b.owing(a.number)
		b.holds(a.number, 1)
		if answered {
			b.meet(a.number)
			if _, err := io.ReadFull(conn, make([]byte, mpa.StartupHeaderLen)); err != nil {
				t.Fatal(err)
			}
			a.meet(b.number)
			b.holds(a.number, 1)
			_ = conn.Close()
		} else {
			_ = conn.Close()
			b.meet(a.number)
			a.meet(b.number)
		}
		delivers(t, a, b)
	}
}

// delivers has a Send reach the first receive of the peer.
func delivers(t *testing.T, from, to *queue) {
	t.Helper()
	from.send(2, wrSend, from.region("text", 0), nil)
	if status := from.completion().Status; status != 0 {
		t.Fatalf("status of the Send: %d", status)
	}
	want(t, "receive", to.completion().ID, 1)
}

// owing sends the Request of a call for the queue whose caller will owe an RTR indication.
func (q *queue) owing(from uint32) net.Conn {
	q.t.Helper()
	i, err := mpa.NewInitiator(mpa.Offer{IRD: 4, ORD: 4, PrivateData: q.callBy(from)})
	if err != nil {
		q.t.Fatal(err)
	}
	return q.dialedWith(i.Start(time.Now()))
}

// TestCalledAndLeft: in every dialect, what is posted for a peer that has called and gone away fails, and nobody waits
// for it to call again: where it owes an RTR indication it has sent that, and where it owes none, nothing tells that it
// had been there.
func TestCalledAndLeft(t *testing.T) {
	for _, dialect := range []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRtr, mpa.DialectRFC5044,
		mpa.DialectRevision0, mpa.DialectStartKey} {
		cfg := Config{RoCE: true, Dialect: dialect}
		a, b := byNumber(newProgramWith(t, cfg).queue(), newProgramWith(t, cfg).queue())
		b.meet(a.number)
		a.meet(b.number)
		until(t, "the connection", func() bool { return b.inner().qp.State() == iwarp.StateRTS })
		b.recv(1, b.region("....", accessLocalWrite))
		must(t, a.d.DestroyQP(a.qp))
		b.send(2, wrSend, b.region("text", 0), nil)
		if status := b.completion().Status; status == 0 {
			t.Errorf("%v: a Send to a peer that has gone", dialect)
		}
	}
}
