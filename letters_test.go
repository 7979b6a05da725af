package iwarp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp"
)

// What has arrived is taken out first, and then the end is told: also where no receive can be posted any more for another.
func TestLettersOfOneWhoHasClosed(t *testing.T) {
	for sent := range letters + 1 {
		var box letterbox
		s := setup{}
		s.accept.Prepare = box.prepare
		ini, res := s.connect(t)
		for i := range sent {
			ini.post(&iwarp.SendWR{Inline: fmt.Append(nil, "letter ", i), Unsignaled: true})
		}
		closing := make(chan error, 1)
		go func() { closing <- ini.Close() }()
		res.wantEvent(iwarp.EventHalfClosed)
		for i := range sent {
			if text, err := box.next(within(t)); err != nil || text != fmt.Sprint("letter ", i) {
				t.Errorf("%d sent: %q, %v", sent, text, err)
			}
		}
		if text, err := box.next(within(t)); !errors.Is(err, iwarp.ErrPeerClosed) {
			t.Errorf("%d sent, and then: %q, %v", sent, text, err)
		}
		must(t, res.Close())
		must(t, <-closing)
	}
}

// Who takes strict turns by Send and Recv has Unready at both ends: a question or an answer may be there before the Recv that is for it.
func TestTurns(t *testing.T) {
	s := setup{}
	s.Dialer.QP.Unready.Messages, s.accept.QP.Unready.Messages = 1, 1
	ini, res := s.connect(t)
	question, answer := ini.mr(1, iwarp.LocalWrite), res.mr(1, iwarp.LocalWrite)
	answered := make(chan error, 1)
	go func() {
		for range 50 {
			_, err := res.Recv(within(t), answer.Slice(0, 1))
			if err == nil {
				err = res.Send(within(t), answer.Slice(0, 1))
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
		must(t, ini.Send(within(t), question.Slice(0, 1)))
		wc, err := ini.Recv(within(t), question.Slice(0, 1))
		must(t, err)
		if wc.Length != 1 || question.Bytes()[0] != byte(i) {
			t.Fatalf("turn %d: %d octets, %d", i, wc.Length, question.Bytes()[0])
		}
	}
	must(t, <-answered)
}
