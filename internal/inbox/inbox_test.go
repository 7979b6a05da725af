package inbox_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/inbox"
	"github.com/goiwarp/iwarp/internal/testrig"
)

const slots, length = 3, 16

// connect connects two ends in memory, and opens an Inbox of the Responder's.
func connect(t *testing.T) (from, to *iwarp.QP, b *inbox.Inbox) {
	t.Helper()
	ours, theirs := testrig.Pipe("initiator", "responder")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		from, _ = new(iwarp.Dialer).Initiate(t.Context(), ours, nil)
	}()
	req, err := new(iwarp.ListenConfig).Respond(t.Context(), theirs, nil)
	testrig.Must(t, err)
	to, err = req.Accept(t.Context(), iwarp.AcceptConfig{QP: iwarp.QPConfig{RecvDepth: slots},
		Prepare: func(qp *iwarp.QP) (err error) {
			b, err = inbox.Open(qp, slots, length)
			return err
		}})
	testrig.Must(t, err)
	<-ended
	return from, to, b
}

// TestInbox takes more messages than there are slots. Each is in its own, and stays there while others come.
func TestInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to, b := connect(t)
		for round := range 3 {
			var wcs []iwarp.WC
			for i := range slots {
				testrig.Must(t, from.PostSend(&iwarp.SendWR{Inline: fmt.Appendf(nil, "round %d, %d", round, i)}))
				wc, err := to.RecvCQ().Next(t.Context())
				testrig.Must(t, errors.Join(err, wc.Err()))
				wcs = append(wcs, wc)
			}
			for i := range wcs { // they were posted in this order
				if got, want := string(b.Bytes(&wcs[i])),
					fmt.Sprintf("round %d, %d", round, i); got != want || wcs[i].ID != uint64(i) {
					t.Errorf("in slot %d: %q, want %q in %d", wcs[i].ID, got, want, i)
				}
			}
			testrig.Must(t, b.Post(0))
			_, err := to.PostRecvs([]iwarp.RecvWR{b.WR(1), b.WR(2)})
			testrig.Must(t, err)
		}
		go func() { _ = from.Close() }()
		testrig.Must(t, to.Close())
		b.Close()
	})
}

// TestEach takes completions until the function has had enough, and then until there will be no more.
func TestEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to, b := connect(t)
		defer b.Close()
		var got []string
		enough := errors.New("enough")
		take := func(wc *iwarp.WC) error {
			if wc.Op != iwarp.OpRecv || wc.Err() != nil {
				return nil
			}
			if got = append(got, string(b.Bytes(wc))); len(got) == slots {
				return enough
			}
			return nil
		}
		for i := range slots {
			testrig.Must(t, from.PostSend(&iwarp.SendWR{Inline: fmt.Appendf(nil, "message %d", i)}))
		}
		if err := inbox.Each(t.Context(), to.RecvCQ(), take); err != enough ||
			fmt.Sprint(got) != "[message 0 message 1 message 2]" {
			t.Errorf("%v after %q", err, got)
		}
		ended := make(chan error)
		go func() { ended <- inbox.Each(t.Context(), to.RecvCQ(), take) }()
		synctest.Wait() // it waits
		go func() { _ = from.Close() }()
		testrig.Must(t, to.Close())
		if err := <-ended; !errors.Is(err, iwarp.ErrNoQP) {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestNoRoom has a QP with fewer receives than slots: nothing is left registered, as its Protection Domain can be
// closed.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
		testrig.Must(t, err)
		defer pd.RNIC().Close()
		qp, err := pd.CreateQP(iwarp.QPConfig{RecvDepth: slots - 1})
		testrig.Must(t, err)
		b, err := inbox.Open(qp, slots, length)
		if b != nil || !errors.Is(err, iwarp.ErrQueueFull) {
			t.Errorf("opened: %v, %v", b != nil, err)
		}
		b.Close() // of one that was not opened, which is nothing
		testrig.Must(t, qp.Close())
		testrig.Must(t, pd.Close())
	})
}

// TestClosed has a Protection Domain that is closed.
func TestClosed(t *testing.T) {
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	testrig.Must(t, err)
	qp, err := pd.CreateQP(iwarp.QPConfig{})
	testrig.Must(t, err)
	testrig.Must(t, pd.RNIC().Close())
	if b, err := inbox.Open(qp, slots, length); b != nil || !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("opened: %v, %v", b != nil, err)
	}
}
