package engine

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A Write that was placed ahead, and waits behind a Send, is refused in its turn if the right to it has gone meanwhile:
// its bytes are not there to be placed again, and nothing else would ask for the right.
//
// Proves D26.
func TestRNRPlacedRevoked(t *testing.T) {
	s := overMessages(t, mpa.RoleInitiator, patient(1<<20, 100))
	buf := make([]byte, 50)
	r := s.region(buf, remoteAll)
	s.arrives(1, write(r.STag(), 0, numbered(50)))
	s.arrives(0, send(1, nil))
	if !bytes.Equal(buf, numbered(50)) || !s.Machine.ReceiverNotReady() {
		t.Fatalf("% x", buf)
	}
	s.table.Revoke(r)
	s.receiveLate(1)
	s.completion(success(1, OpReceive, 0))
	s.wantCause(rdmap.CodeDDPInvalidSTag, false)
}

// Nothing waits where the consumer has asked for Closing, and only an RTR indication is still to come: no receives will
// be posted for it.
//
// Proves D37.
func TestRNRStrict(t *testing.T) {
	p := responder(t, patient(1<<20, 100), func(s *setup) { s.PeerToPeer, s.RTR = true, mpa.RTRWrite })
	p.modify(Closing)
	p.wantState(RTS)
	one := send(1, []byte("one"))
	p.send(one)
	p.wantTerminate(terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, one))
}

// prompt is a Shared Receive Queue to which another posts after the QP has found none, and before it says that it
// waits.
type prompt struct{ shared }

func (p *prompt) Awaits() bool {
	p.work = append(p.work, RecvWork{ID: 5})
	return p.shared.Awaits()
}

// A receive that comes just before the QP says that it waits is used at once: nobody would tell it of that receive.
func TestRNRPrompt(t *testing.T) {
	p := responder(t, patient(1<<20, 100), func(s *setup) { s.Source = &prompt{} })
	p.send(send(1, nil))
	p.completion(success(5, OpReceive, 0))
	if p.Machine.ReceiverNotReady() {
		t.Error("something waits")
	}
}
