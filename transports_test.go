package iwarp_test

import (
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/rdmap"
)

// transports are those that dialogues are led over. A zone belongs to link-local
// addresses; that of the loopback interface is ignored by the system, and must not be in
// anybody's way.
func transports() []*rig.Transport {
	all := []*rig.Transport{
		{Name: "IPv4", Network: "tcp4", Host: "127.0.0.1"},
		{Name: "IPv6", Network: "tcp6", Host: "::1"},
		{Name: "TLS", Network: "tcp", Host: "127.0.0.1", Tls: true},
		{Name: "Unix socket", Unix: true},
		{Name: "SCTP", Network: "sctp4", Host: "127.0.0.1", Sctp: true},
		{Name: "SCTP of the kernel", Network: "sctp4:kernel", Host: "127.0.0.1", Sctp: true},
		{Name: "segments in any order", Shuffled: true},
		{Name: "TCP in user space", User: true},
		{Name: "MPA-aware TCP", Aware: &rig.AwareLink{EMSS: 1420}},
		{Name: "MPA-aware TCP in any order", Aware: &rig.AwareLink{EMSS: 1420, Disorder: 8, Recut: true}},
	}
	if name := loopback(); name != "" {
		all = append(all, &rig.Transport{Name: "IPv6 with a zone", Network: "tcp", Host: "::1%" + name})
	}
	return all
}

// loopback returns the name of the loopback interface.
func loopback() string {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp != 0 {
			return i.Name
		}
	}
	return ""
}

// overAll leads a dialogue over each transport that the system has, and overStreams over those
// that MPA is on: in others either side may send first.
func overAll(t *testing.T, dialogue func(t *testing.T, s rig.Setup)) {
	t.Helper()
	overEach(t, transports(), dialogue)
}

// overStreams is described with overAll.
func overStreams(t *testing.T, dialogue func(t *testing.T, s rig.Setup)) {
	t.Helper()
	overEach(t, slices.DeleteFunc(transports(), func(o *rig.Transport) bool { return o.Shuffled || o.Sctp }), dialogue)
}

func overEach(t *testing.T, all []*rig.Transport, dialogue func(t *testing.T, s rig.Setup)) {
	t.Helper()
	for _, over := range all {
		t.Run(over.Name, func(t *testing.T) {
			if over.Shuffled {
				synctest.Test(t, func(t *testing.T) { dialogue(t, rig.Setup{Over: over}) })
				return
			}
			t.Parallel()
			over.Needed(t)
			dialogue(t, rig.Setup{Over: over})
		})
	}
}

// TestTransports leads the dialogues about the end of a connection over each transport;
// those of verbs_test.go are led over each, too.
func TestTransports(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		rig.Works(t, ini, res)
		rig.Finish(t, ini, res)
		if res.State() != iwarp.StateClosed || ini.State() != iwarp.StateClosed {
			t.Errorf("states %v and %v", ini.State(), res.State())
		}
	})
}

// TestTransportsLoseNothing has two ends post Sends and close at once over each transport.
//
// Proves D30, D33.
func TestTransportsLoseNothing(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		s.Dialer, s.Accept = iwarp.Dialer{QP: rig.DeepQueues()}, iwarp.AcceptConfig{QP: rig.DeepQueues()}
		ini, res := s.Connect(t)
		rig.PostAll(ini, res)
		rig.Finish(t, ini, res)
		rig.WantAll(t, ini, res)
	})
}

// TestTransportsTerminate has a Write refused right before a close over each transport.
//
// Proves P38.
func TestTransportsTerminate(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		rig.WriteNowhere(ini)
		var told *iwarp.TerminateError
		if err := ini.Close(); !errors.As(err, &told) || !told.Remote || told.Code != rdmap.CodeDDPInvalidSTag {
			t.Errorf("Close: %v", err)
		}
		_ = res.Close()
	})
}

// TestTransportsAbort ends connections at once over each transport. Only a Unix socket has no reset.
func TestTransportsAbort(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		res.MustPostRecv(1)
		if err := ini.Abort(); err != nil {
			t.Error(err)
		}
		if wc := res.WantReceived(1, iwarp.StatusFlushed); !errors.Is(wc.Err(), iwarp.ErrClosed) {
			t.Errorf("flushed: %v", wc.Err())
		}
		if err := res.WantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) && (err != nil || !s.Over.Unix) {
			t.Errorf("ended: %v", err)
		}
	})
}

// TestLargeSegments looks at the segments of a long transfer: they are as large as
// TCP's EMSS allows in the end.
//
// Proves S03.
func TestLargeSegments(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{})
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	accepted := res.Takes(ln, iwarp.AcceptConfig{PD: res.PD})
	c := rig.DialTCP(t, ln.Addr().String())
	d := iwarp.Dialer{PD: ini.PD}
	var err error
	ini.QP, err = d.Initiate(rig.Within(t), c, nil)
	rig.Must(t, err)
	rig.Must(t, <-accepted)
	n := ini.Negotiated()
	if n.EMSS < 536 || n.MULPDU != layout.MULPDU(n.EMSS, false) {
		t.Errorf("EMSS %d and MULPDU %d, TCP now says %d", n.EMSS, n.MULPDU, maxSegment(t, c))
	}
	src, dst := ini.MR(1<<20, 0), res.MR(1<<20, iwarp.RemoteWrite)
	for round := 0; round < 4 || ini.Query().MULPDU != layout.MULPDU(maxSegment(t, c), false); round++ {
		if round == 100 {
			t.Fatalf("MULPDU %d, TCP's EMSS is %d", ini.Query().MULPDU, maxSegment(t, c))
		}
		if _, err := ini.Write(rig.Within(t), src.Slice(0, 1<<20), dst.Remote(0)); err != nil {
			t.Fatal(err)
		}
	}
	if s := ini.Stats(); s.SentStream/s.SentFPDUs < uint64(n.EMSS)/2 {
		t.Errorf("%d FPDUs for %d bytes, with an EMSS of %d at first", s.SentFPDUs, s.SentStream, n.EMSS)
	}
}

// TestPipe runs over a connection that is no socket.
//
// Proves S03.
func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := rig.Setup{Pipe: true}.Connect(t)
		if n := ini.Negotiated(); n.EMSS != 1460 || n.MULPDU != layout.MULPDU(1460, false) {
			t.Errorf("EMSS %d, MULPDU %d", n.EMSS, n.MULPDU)
		}
		rig.Works(t, ini, res)
		rig.Finish(t, ini, res)
	})
}

// TestNoHalves runs over a connection that cannot be closed by halves: it is
// closed as a whole.
func TestNoHalves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		ini := rig.NewEnd(t, iwarp.RNICConfig{})
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		accepted := rig.DialInBackground(t, func() error {
			req, err := (&iwarp.ListenConfig{PD: res.PD}).Respond(t.Context(), b, nil)
			if err == nil {
				res.QP, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
			}
			return err
		})
		d := iwarp.Dialer{PD: ini.PD}
		var err error
		if ini.QP, err = d.Initiate(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		rig.Must(t, <-accepted)
		rig.Works(t, ini, res)
		if err := ini.CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("CloseWrite: %v", err)
		}
		rig.Works(t, ini, res)
		rig.Finish(t, ini, res)
	})
}
