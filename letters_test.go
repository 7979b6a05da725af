package iwarp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// What has arrived is taken out first, and then the end is told: also where no receive can be posted any more for
// another.
func TestLettersOfOneWhoHasClosed(t *testing.T) {
	for sent := range letters + 1 {
		var box letterbox
		s := rig.Setup{}
		s.Accept.Prepare = box.prepare
		ini, res := s.Connect(t)
		for i := range sent {
			ini.MustPost(&iwarp.SendWR{Inline: fmt.Append(nil, "letter ", i), Unsignaled: true})
		}
		closing := make(chan error, 1)
		go func() { closing <- ini.Close() }()
		res.WantEvent(iwarp.EventHalfClosed)
		for i := range sent {
			if text, err := box.next(rig.Within(t)); err != nil || text != fmt.Sprint("letter ", i) {
				t.Errorf("%d sent: %q, %v", sent, text, err)
			}
		}
		if text, err := box.next(rig.Within(t)); !errors.Is(err, iwarp.ErrPeerClosed) {
			t.Errorf("%d sent, and then: %q, %v", sent, text, err)
		}
		rig.Must(t, res.Close())
		rig.Must(t, <-closing)
	}
}

// Who takes strict turns by Send and Recv has RNR at both ends: a question or an answer may be there before the Recv
// that is for it.
func TestTurns(t *testing.T) {
	s := rig.Setup{}
	s.Dialer.QP.RNR.Messages, s.Accept.QP.RNR.Messages = 1, 1
	ini, res := s.Connect(t)
	question, answer := ini.MR(1, iwarp.LocalWrite), res.MR(1, iwarp.LocalWrite)
	answered := make(chan error, 1)
	go func() {
		for range 50 {
			_, err := res.Recv(rig.Within(t), answer.Slice(0, 1))
			if err == nil {
				err = res.Send(rig.Within(t), answer.Slice(0, 1))
			}
			if err != nil {
				answered <- err
				return
			}
		}
		answered <- nil
	}()
	for i := range 50 {
		question.Bytes()[0] = byte(i)
		rig.Must(t, ini.Send(rig.Within(t), question.Slice(0, 1)))
		wc, err := ini.Recv(rig.Within(t), question.Slice(0, 1))
		rig.Must(t, err)
		if wc.Length != 1 || question.Bytes()[0] != byte(i) {
			t.Fatalf("turn %d: %d octets, %d", i, wc.Length, question.Bytes()[0])
		}
	}
	rig.Must(t, <-answered)
}
