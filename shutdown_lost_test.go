package iwarp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// A leaver ends a client's connection while its server is shutting down.
type leaver func(client *end)

// TestShutdownLost has connections of a server end while it shuts down, beside one that ends in order, and one that was lost before,
// which is no business of Shutdown's.
func TestShutdownLost(t *testing.T) {
	t.Parallel()
	abort := func(client *end) { _ = client.Abort() }
	terminate := func(client *end) { should(client.t, client.Modify(iwarp.StateTerminate)) }
	for name, c := range map[string]struct {
		leave []leaver
		lost  bool   // one was
		text  string // "": in order
	}{
		"none":      {nil, false, ""},
		"one":       {[]leaver{abort}, true, "did not end in order: 1 of 3; one of them: close "},
		"Terminate": {[]leaver{terminate}, false, "did not end in order: 1 of 3; one of them: close "},
		"both":      {[]leaver{terminate, abort, abort}, true, "did not end in order: 3 of 5; one of them: close "},
	} {
		for _, all := range []bool{false, true} {
			s := newShutter(t, all)
			gone, its := s.client(iwarp.QPConfig{})
			_ = gone.Abort()
			wait(t, its.Done(), "the end of a connection before Shutdown")
			s.client(iwarp.QPConfig{})
			err := s.shutdownWhile(c.leave)
			if (err != nil) != (c.text != "") || err != nil && !strings.Contains(err.Error(), c.text) || strings.Count(text(err), "close ") > 1 {
				t.Errorf("%s: %v", name, err)
			}
			if lost := errors.Is(err, iwarp.ErrConnectionLost); lost != c.lost {
				t.Errorf("%s: lost %t: %v", name, lost, err)
			}
			var told *iwarp.TerminateError
			if errors.As(err, &told) && told.Code != rdmap.CodeLocalCatastrophic || name == "Terminate" && told == nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A shutter is a server that is to be shut down.
type shutter struct {
	*testing.T
	rnic     *iwarp.RNIC
	pd       *iwarp.PD
	ln       *iwarp.Listener
	shutdown func(context.Context) error
}

func newShutter(t *testing.T, all bool) *shutter {
	t.Helper()
	rnic := newRNIC(t, iwarp.RNICConfig{})
	pd := newPD(t, rnic)
	s := &shutter{T: t, rnic: rnic, pd: pd, ln: listen(t, iwarp.ListenConfig{PD: pd})}
	if s.shutdown = s.ln.Shutdown; all {
		s.shutdown = rnic.Shutdown
	}
	return s
}

// client connects one more.
func (s *shutter) client(cfg iwarp.QPConfig) (client, server *end) {
	s.Helper()
	client, server = newEnd(s.T, iwarp.RNICConfig{}), &end{t: s.T, rnic: s.rnic, pd: s.pd}
	accepted := server.takes(s.ln, iwarp.AcceptConfig{QP: iwarp.QPConfig{CloseTimeout: soon}})
	must(s.T, <-client.dials(iwarp.Dialer{PD: client.pd, QP: cfg}, s.ln))
	must(s.T, <-accepted)
	return client, server
}

// shutdownWhile shuts the server down, and has clients leave that know of it.
func (s *shutter) shutdownWhile(leave []leaver) error {
	s.Helper()
	var clients []*end
	for range leave {
		client, _ := s.client(iwarp.QPConfig{HalfClose: true}) // which does not close by itself
		clients = append(clients, client)
	}
	err := make(chan error, 1)
	go func() { err <- s.shutdown(within(s.T)) }()
	for i, client := range clients {
		client.wantEvent(iwarp.EventHalfClosed)
		leave[i](client)
	}
	return <-err
}
