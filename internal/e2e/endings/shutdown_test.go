package endings

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestShutdownUnderWay has a server go in the middle of a Read and of a Send of a client's: both are finished.
func TestShutdownUnderWay(t *testing.T) {
	t.Parallel()
	const n = 8 << 20
	for name, begin := range map[string]func(client, server *rig.End) (done iwarp.Op, came func() *iwarp.MR){
		"a Read": func(client, server *rig.End) (iwarp.Op, func() *iwarp.MR) {
			sink, src := client.MR(n, iwarp.LocalWrite), server.Filled(n, 3, iwarp.RemoteRead)
			client.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpRead,
				SGL: []iwarp.SGE{sink.Slice(0, n)}, Remote: src.Remote(0)})
			rig.Until(t, func() bool { return server.Stats().SentStream > n/8 }, "some of the response")
			return iwarp.OpRead, func() *iwarp.MR { return sink }
		},
		"a Send": func(client, server *rig.End) (iwarp.Op, func() *iwarp.MR) {
			sink, src := server.MR(n, iwarp.LocalWrite), client.Filled(n, 3, 0)
			server.MustPostRecv(5, sink.Slice(0, n))
			client.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(0, n)}})
			rig.Until(t, func() bool { return server.Stats().ReceivedStream > n/8 }, "some of the Send")
			return iwarp.OpSend, func() *iwarp.MR { server.WantReceived(5, iwarp.StatusSuccess); return sink }
		},
	} {
		for _, all := range []bool{false, true} {
			rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
			pd := rig.NewPD(t, rnic)
			ln := rig.Listen(t, iwarp.ListenConfig{PD: pd})
			client, server := rig.NewEnd(t, iwarp.RNICConfig{}), &rig.End{T: t, RNIC: rnic, PD: pd}
			patient := iwarp.QPConfig{CloseTimeout: rig.Soon}
			accepted := server.Takes(ln, iwarp.AcceptConfig{QP: patient})
			rig.Must(t, <-client.Dials(iwarp.Dialer{PD: client.PD, QP: patient}, ln))
			rig.Must(t, <-accepted)
			op, came := begin(client, server)
			shutdown := ln.Shutdown
			if all {
				shutdown = rnic.Shutdown
			}
			if err := shutdown(rig.Within(t)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			client.WantSent(op, 1, iwarp.StatusSuccess)
			rig.Same(t, name, came(), client.Filled(n, 3, 0))
			if err := client.WantEnd(); err != nil || !errors.Is(client.Err(), iwarp.ErrPeerClosed) {
				t.Errorf("%s: the client: %v", name, client.Err())
			}
		}
	}
}

// TestShutdownInTime has a context end that had nothing to abort.
func TestShutdownInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	rig.Should(t, rnic.Shutdown(ctx))
}

// TestShutdownAfterLoss has a server go that has lost a connection before: nobody is told once more, and the QP is
// closed, too.
func TestShutdownAfterLoss(t *testing.T) {
	t.Parallel()
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	pd := rig.NewPD(t, rnic)
	ln := rig.Listen(t, iwarp.ListenConfig{PD: pd})
	client, server := rig.NewEnd(t, iwarp.RNICConfig{}), &rig.End{T: t, RNIC: rnic, PD: pd}
	accepted := server.Takes(ln, iwarp.AcceptConfig{})
	rig.Must(t, <-client.Dials(iwarp.Dialer{PD: client.PD}, ln))
	rig.Must(t, <-accepted)
	rig.Must(t, client.Abort())
	if err := server.WantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("the server's connection: %v", err)
	}
	rig.Must(t, ln.Shutdown(rig.Within(t)))
	if n := len(rnic.QPs()); n != 0 {
		t.Errorf("%d QPs are left", n)
	}
}

// TestShutdownSparesOthers: a QP whose connection came by the Listener and has ended is no more the Listener's when it
// has another connection, or is ready for one.
func TestShutdownSparesOthers(t *testing.T) {
	t.Parallel()
	s := newShutter(t, false)
	dials, waits := s.left(), s.left()
	rig.Must(t, waits.Modify(iwarp.StateIdle))
	elsewhere, peer := rig.Listen(t, iwarp.ListenConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	accepted := peer.Takes(elsewhere, iwarp.AcceptConfig{PD: peer.PD})
	rig.Must(t, new(iwarp.Dialer).DialQP(rig.Within(t), dials.QP, "tcp", elsewhere.Addr().String()))
	rig.Must(t, <-accepted)
	rig.Must(t, s.shutdown(rig.Within(t)))
	if dials.State() != iwarp.StateRTS {
		t.Errorf("one that was dialed is %v: %v", dials.State(), dials.Err())
	}
	rig.Should(t, waits.PostRecv(&iwarp.RecvWR{}))
	for _, e := range []*rig.End{dials, waits, peer} {
		_ = e.Abort()
	}
}

// A leaver ends a client's connection while its server is shutting down.
type leaver func(client *rig.End)

// TestShutdownLost has connections of a server end while it shuts down, beside one that ends in order, and one that was
// lost before, which is no business of Shutdown's.
func TestShutdownLost(t *testing.T) {
	t.Parallel()
	abort := func(client *rig.End) { _ = client.Abort() }
	terminate := func(client *rig.End) { rig.Should(client.T, client.Modify(iwarp.StateTerminate)) }
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
			rig.Wait(t, its.Done(), "the end of a connection before Shutdown")
			s.client(iwarp.QPConfig{})
			err := s.shutdownWhile(c.leave)
			if (err != nil) != (c.text != "") || err != nil && !strings.Contains(err.Error(), c.text) ||
				strings.Count(text(err), "close ") > 1 {
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
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	pd := rig.NewPD(t, rnic)
	s := &shutter{T: t, rnic: rnic, pd: pd, ln: rig.Listen(t, iwarp.ListenConfig{PD: pd})}
	if s.shutdown = s.ln.Shutdown; all {
		s.shutdown = rnic.Shutdown
	}
	return s
}

// client connects one more.
func (s *shutter) client(cfg iwarp.QPConfig) (client, server *rig.End) {
	s.Helper()
	client, server = rig.NewEnd(s.T, iwarp.RNICConfig{}), &rig.End{T: s.T, RNIC: s.rnic, PD: s.pd}
	accepted := server.Takes(s.ln, iwarp.AcceptConfig{QP: iwarp.QPConfig{CloseTimeout: rig.Soon}})
	rig.Must(s.T, <-client.Dials(iwarp.Dialer{PD: client.PD, QP: cfg}, s.ln))
	rig.Must(s.T, <-accepted)
	return client, server
}

// left returns the server's end of a connection that has ended in order.
func (s *shutter) left() *rig.End {
	s.Helper()
	client, server := s.client(iwarp.QPConfig{})
	rig.Must(s.T, client.Close())
	rig.Wait(s.T, server.Done(), "the end of a connection")
	return server
}

// shutdownWhile shuts the server down, and has clients leave that know of it.
func (s *shutter) shutdownWhile(leave []leaver) error {
	s.Helper()
	var clients []*rig.End
	for range leave {
		client, _ := s.client(iwarp.QPConfig{HalfClose: true}) // which does not close by itself
		clients = append(clients, client)
	}
	err := make(chan error, 1)
	go func() { err <- s.shutdown(rig.Within(s.T)) }()
	for i, client := range clients {
		client.WantEvent(iwarp.EventHalfClosed)
		leave[i](client)
	}
	return <-err
}
