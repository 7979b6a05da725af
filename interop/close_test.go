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

// What each end sends in TestCloses: the n-th message is full of bytes n.
const (
	closeCount  = 32
	closeSize   = 4096
	closeRounds = 4 // that are judged in full, of each kind
	closeTries  = 8 // for each of them
)

// TestCloses has both ends, in either role, send as much as they may at once, and then
// close: what completed with success at one end has come to the other, once, in order, and
// with the right bytes. The guest's program takes its connection down as soon as its own
// messages are sent, or when all of ours have come ("wait"). siw stops sending at our FIN,
// be it in the middle of a message: what it has not sent by then is flushed there, and not
// lost, and our Close may say that a message was cut off.
//
// A siw that is the first to disconnect takes nothing more, and resets the connection if
// something comes: then both lose what was on its way. Of such a round it is demanded that
// what came is right and in order, and that an error of our Close says that the connection was
// lost. That there is one cannot be demanded: the TCP that we talk to is that of QEMU's user
// network, which acknowledges what the guest has not got, and makes a FIN of its reset. Rounds
// are repeated until enough others were judged.
func TestCloses(t *testing.T) {
	t.Parallel()
	closes(t, Boot(t, Options{}), closeRounds)
}

func closes(t *testing.T, g *Guest, rounds int) {
	for _, wait := range []string{"wait", ""} {
		t.Run("to the guest "+wait, func(t *testing.T) {
			for r := (repeated{t: t, rounds: rounds}); r.more(); {
				guest := g.Serve(t, fmt.Sprintf("cmpd -n %d '%d %s'", rpingPort, closeCount, wait))
				e := closer{t: t}
				d := iwarp.Dialer{QP: e.config(), Prepare: e.prepare}
				qp, err := g.dial(testrig.Within(t), &d, g.server())
				testrig.Must(t, err)
				r.judged += e.judge(qp, guest, wait == "")
			}
		})
		t.Run("from the guest "+wait, func(t *testing.T) {
			for r := (repeated{t: t, rounds: rounds}); r.more(); {
				ln, port, err := g.listen(t.Context(), iwarp.ListenConfig{})
				testrig.Must(t, err)
				guest := g.Start(t, fmt.Sprintf("timeout -s KILL 60 cmpd -N $PEER_IP %s '%d %s'",
					port, closeCount, wait))
				req, err := ln.Accept(testrig.Within(t))
				testrig.Must(t, err)
				e := closer{t: t}
				qp, err := req.Accept(testrig.Within(t), iwarp.AcceptConfig{QP: e.config(), Prepare: e.prepare})
				testrig.Must(t, err)
				r.judged += e.judge(qp, guest, wait == "")
				testrig.Must(t, ln.Close())
			}
		})
	}
}

// repeated are rounds that go on until so many were judged in full.
type repeated struct {
	t             testing.TB
	rounds        int
	tried, judged int
}

// more reports whether there is to be another round.
func (r *repeated) more() bool {
	switch {
	case r.judged >= r.rounds:
		r.t.Logf("%d of %d rounds were judged in full: in the others siw was the first to disconnect",
			r.judged, r.tried)
		return false
	case r.tried == r.rounds*closeTries:
		r.t.Errorf("%d of %d rounds were judged in full, and %d are to be: siw was the first to disconnect in the others", r.judged, r.tried, r.rounds)
		return false
	}
	r.tried++
	return true
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
	if _, err := fmt.Sscanf(guest.Output()[max(0, strings.Index(guest.Output(), "SENT ")):], "SENT %d CAME %d GOOD %d",
		&sent, &came, &good); err != nil {
		e.t.Fatalf("the guest: %v\n%s", err, guest.Output())
	}
	e.t.Logf("Close: %v; the guest has sent %d, %d came; %d of ours came there, %d of them good",
		closed, sent, received, came, good)
	if good != came {
		e.t.Errorf("%d messages have come to the guest, of which %d are right", came, good)
	}
	cut := errors.As(closed, new(*iwarp.TerminateError))
	if lost := errors.Is(closed, iwarp.ErrConnectionLost); (qp.State() == iwarp.StateClosed) != (closed == nil) ||
		closed != nil && !lost && !cut {
		e.t.Errorf("Close: %v, in state %v", closed, qp.State())
	}
	if leaves && sent == closeCount && came < closeCount {
		// siw was the first to disconnect: our FIN would have stopped its sending, or come after our last message
		return 0
	}
	if received < sent {
		e.t.Errorf("the guest has sent %d messages with success, and %d have come", sent, received)
	}
	if closed != nil && (!cut || sent == closeCount) {
		e.t.Errorf("Close: %v, of a connection on which siw has cut no message off", closed)
	}
	if came != closeCount {
		e.t.Errorf("%d messages were sent with success, and %d have come to the guest", closeCount, came)
	}
	return 1
}

// received counts the messages that have come, and compares their bytes.
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
			e.t.Errorf("message %d has %d other bytes, in receive %d", n, wc.Length, wc.ID)
		}
		n++
	}
}

func message(n int) []byte { return bytes.Repeat([]byte{byte(n)}, closeSize) }
