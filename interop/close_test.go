//go:build interop

package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// What each end sends in TestCloses: the n-th message is full of octets n.
const (
	closeCount  = 32
	closeSize   = 4096
	closeRounds = 8
)

// TestCloses has both ends, in either role, send as much as they may at once, and then
// close: what completed with success at one end has come to the other, once, in order, and
// with the right octets. The guest's program takes its connection down as soon as its own
// messages are sent, or when all of ours have come ("wait"). siw stops sending at our FIN,
// be it in the middle of a message: what it has not sent by then is flushed there, and not
// lost, and our Close may say that a message was cut off.
//
// A siw that is the first to disconnect takes nothing more, and resets the connection if
// something comes: then both lose what was on its way. Nothing is demanded of such a round
// but that what came is right: not even our Close can tell, as QEMU's user network makes a
// FIN of the guest's reset. Not all rounds may be like that.
func TestCloses(t *testing.T) {
	t.Parallel()
	closes(t, Boot(t, Options{}), closeRounds)
}

func closes(t *testing.T, g *Guest, rounds int) {
	for _, wait := range []string{"wait", ""} {
		t.Run("to the guest "+wait, func(t *testing.T) {
			judged := 0
			for range rounds {
				guest := g.Serve(t, fmt.Sprintf("cmpd -n %d '%d %s'", rpingPort, closeCount, wait))
				e := closer{t: t}
				d := iwarp.Dialer{QP: e.config(), Prepare: e.prepare}
				qp, err := g.dial(testrig.Within(t), &d, g.server())
				testrig.Must(t, err)
				judged += e.judge(qp, guest, wait == "")
			}
			wantJudged(t, judged, rounds)
		})
		t.Run("from the guest "+wait, func(t *testing.T) {
			judged := 0
			for range rounds {
				ln, port, err := g.listen(t.Context(), iwarp.ListenConfig{})
				testrig.Must(t, err)
				guest := g.Start(t, fmt.Sprintf("timeout -s KILL 60 cmpd -N $PEER_IP %s '%d %s'", port, closeCount, wait))
				req, err := ln.Accept(testrig.Within(t))
				testrig.Must(t, err)
				e := closer{t: t}
				qp, err := req.Accept(testrig.Within(t), iwarp.AcceptConfig{QP: e.config(), Prepare: e.prepare})
				testrig.Must(t, err)
				judged += e.judge(qp, guest, wait == "")
				testrig.Must(t, ln.Close())
			}
			wantJudged(t, judged, rounds)
		})
	}
}

// wantJudged wants some rounds of which all was demanded, where there were many.
func wantJudged(t *testing.T, judged, rounds int) {
	t.Helper()
	t.Logf("%d of %d rounds were judged in full: in the others siw was the first to disconnect", judged, rounds)
	if judged == 0 && rounds >= closeRounds {
		t.Error("siw was the first to disconnect in every round: nothing is known of what both ends deliver")
	}
}

// A closer is iwarp's end: it sends, and closes at once.
type closer struct {
	t     testing.TB
	inbox *iwarp.MR
}

// config is without SendEarly: what a Responder sends together with its Reply makes siw's
// Initiator give up. The guest's client sends, so that the Responder may in time.
func (*closer) config() iwarp.QPConfig {
	return iwarp.QPConfig{SendDepth: closeCount, RecvDepth: closeCount}
}

func (e *closer) prepare(qp *iwarp.QP) (err error) {
	e.inbox, err = qp.PD().Register(make([]byte, closeCount*closeSize), iwarp.LocalWrite)
	for i := 0; err == nil && i < closeCount; i++ {
		err = qp.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{e.inbox.Slice(i*closeSize, closeSize)}})
	}
	return err
}

// judge sends, closes, and compares what both ends say. It returns how many rounds could be judged in full: one, or
// none where siw was the first to disconnect.
func (e *closer) judge(qp *iwarp.QP, guest *Proc, leaves bool) int {
	e.t.Helper()
	src, err := qp.PD().Register(message(0), 0)
	testrig.Must(e.t, err)
	for i := range closeCount {
		testrig.Must(e.t, src.Update(func(b []byte) { copy(b, message(i)) }))
		testrig.Must(e.t, qp.Send(testrig.Within(e.t), src.Slice(0, closeSize)))
	}
	closed := qp.Close()
	received := e.received(qp)
	guest.Wait(e.t, 30*time.Second)
	var sent, came, good int
	if _, err := fmt.Sscanf(guest.Output()[max(0, strings.Index(guest.Output(), "SENT ")):], "SENT %d CAME %d GOOD %d", &sent, &came, &good); err != nil {
		e.t.Fatalf("the guest: %v\n%s", err, guest.Output())
	}
	e.t.Logf("Close: %v; the guest has sent %d, %d came; %d of ours came there, %d of them good", closed, sent, received, came, good)
	if good != came {
		e.t.Errorf("%d messages have come to the guest, of which %d are right", came, good)
	}
	if leaves && sent == closeCount && came < closeCount {
		return 0 // siw was the first to disconnect: our FIN would have stopped its sending, or come after our last message
	}
	if received < sent {
		e.t.Errorf("the guest has sent %d messages with success, and %d have come", sent, received)
	}
	if closed != nil && !errors.Is(closed, iwarp.ErrClosed) {
		e.t.Errorf("Close: %v", closed)
	}
	if came != closeCount {
		e.t.Errorf("%d messages were sent with success, and %d have come to the guest", closeCount, came)
	}
	return 1
}

// received counts the messages that have come, and compares their octets.
func (e *closer) received(qp *iwarp.QP) (n int) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		wc, err := qp.RecvCQ().Next(over)
		if err != nil {
			return n
		}
		if wc.Op != iwarp.OpRecv || wc.Err() != nil {
			continue
		}
		if got := e.inbox.Bytes()[n*closeSize:][:wc.Length]; wc.ID != uint64(n) || !bytes.Equal(got, message(n)) {
			e.t.Errorf("message %d has %d other octets, in receive %d", n, wc.Length, wc.ID)
		}
		n++
	}
}

func message(n int) []byte { return bytes.Repeat([]byte{byte(n)}, closeSize) }
