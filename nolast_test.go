package iwarp_test

import (
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// writes notes the length of each write.
type writes struct {
	net.Conn
	sizes []int
}

func (w *writes) Write(b []byte) (int, error) {
	w.sizes = append(w.sizes, len(b))
	return w.Conn.Write(b)
}

// TestNoLastMessage begins MPA where the streaming mode has no last message of ours: nothing is written for it, as
// TLS, or a record of another protocol, would make octets of an empty write too.
func TestNoLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPipe(t)
		ini, res := &writes{Conn: a}, &writes{Conn: b}
		dialed := dialInBackground(t, func() error {
			qp, err := new(iwarp.Dialer).Initiate(within(t), ini, nil)
			if err == nil {
				err = qp.Abort()
			}
			return err
		})
		req, err := iwarp.Respond(within(t), res, nil, iwarp.ListenConfig{})
		must(t, err)
		if len(ini.sizes) != 1 || len(res.sizes) != 0 {
			t.Errorf("the Initiator has written %d octets, the Responder %d", ini.sizes, res.sizes)
		}
		qp, err := req.Accept(within(t), iwarp.AcceptConfig{})
		must(t, err)
		must(t, <-dialed)
		_ = qp.Abort()
	})
}

// TestFailedRespondIsCounted has a peer send no Request.
func TestFailedRespondIsCounted(t *testing.T) {
	a, b := newPipe(t)
	go a.Write(frame(reply(2)))
	rnic := newRNIC(t, iwarp.RNICConfig{})
	if _, err := iwarp.Respond(within(t), b, nil, iwarp.ListenConfig{RNIC: rnic}); err == nil {
		t.Fatal("it was taken for a Request")
	}
	if s := rnic.Stats().Startup; s.Started != 1 || s.Failed[mpa.FailureResponderResponder.String()] != 1 {
		t.Errorf("counted %+v", s)
	}
}
