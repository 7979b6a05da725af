package startup

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// without is a preset that knows no bound on private data, and falls back.
func without(p *iwarp.Preset) *iwarp.Preset {
	q := *p
	q.MaxPDLength, q.NoFallback = 0, false
	return &q
}

// room returns the private data that a preset leaves to the consumer, in bytes, in
// the dialect that we start with.
func room(t *testing.T, p *iwarp.Preset) int {
	b := peerRow(t, p.Name)
	return b.MaxPrivateData(b.Highest)
}

// overlong is what a peer says of one byte more of private data than it takes.
func overlong(t *testing.T, p *iwarp.Preset) string {
	most := peerRow(t, p.Name).MaxPDLength
	return fmt.Sprintf("PD_Length %d over %d", most+1, most)
}

// tooLong gives the peer one byte more than it takes: we refuse that before it is
// sent. Without the limit the peer resets the connection.
func tooLong(t *testing.T, p *iwarp.Preset) {
	fits, long := make([]byte, room(t, p)), make([]byte, room(t, p)+1)
	s := respondAs(t, peerRow(t, p.Name))
	_, err := s.dial(t, iwarp.Dialer{Preset: p, MPA: mpa.Offer{PrivateData: long}})
	wantPresetError(t, err, p, len(fits))
	select {
	case err := <-s.ended:
		t.Errorf("there was a connection: %v", err)
	default:
	}
	s.talks(t, iwarp.Dialer{Preset: p, MPA: mpa.Offer{PrivateData: fits}})
	_, err = s.dial(t, iwarp.Dialer{Preset: without(p), NoFallback: true, MPA: mpa.Offer{PrivateData: long}})
	wantStartupEnd(t, err)
	wantRefused(t, <-s.ended, peers.Resets, overlong(t, p))
}

func wantPresetError(t *testing.T, err error, p *iwarp.Preset, limit int) {
	t.Helper()
	if !errors.Is(err, mpa.ErrOffer) || !errors.Is(err, iwarp.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	said := fmt.Sprintf("preset %s: %d bytes of private data, there is room for %d: %s",
		p.Name, limit+1, limit, why(p, "MaxPDLength"))
	if !rig.Contains(err, said) {
		t.Errorf("the error does not say which preset, how much, and why: %v", err)
	}
}

// longCrashes is tooLong for siw, whose Initiator crashes. Our Accept and our Reject
// keep from that, and the Request can be answered otherwise.
func longCrashes(t *testing.T, p *iwarp.Preset) {
	tooLong(t, p)
	fits, long := make([]byte, room(t, p)), make([]byte, room(t, p)+1)
	a := accepting{listen: iwarp.ListenConfig{Preset: without(p)},
		accept: iwarp.AcceptConfig{MPA: mpa.Answer{PrivateData: long}}}
	_, err := a.from(t, peerRow(t, p.Name), peersim.Consumer{})
	wantRefused(t, err, peers.Crashes, overlong(t, p))

	ln := rig.Listen(t, iwarp.ListenConfig{Preset: p})
	refused := make(chan error, 1)
	go func() {
		b := peerRow(t, p.Name)
		_, err := peersim.Initiate(&b, rig.DialTCP(t, ln.Addr().String()), peersim.Consumer{})
		refused <- err
	}()
	req, err := ln.Accept(rig.Within(t))
	rig.Must(t, err)
	_, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{MPA: mpa.Answer{PrivateData: long}})
	wantPresetError(t, err, p, len(fits))
	err = req.Reject(long)
	wantPresetError(t, err, p, len(fits))
	c, err := req.RejectKeep(fits, 0, 0)
	rig.Must(t, err)
	c.Close()
	wantRefused(t, <-refused, peers.Closes, "R=1")
}

// longFallsBack sends siw a Request that is too long for revision 2 and not for
// revision 1: a fallback would take the RST for a peer that has no revision 2.
func longFallsBack(t *testing.T, p *iwarp.Preset) {
	s := respondAs(t, peerRow(t, p.Name))
	n := s.talks(t, iwarp.Dialer{Preset: without(p), MPA: mpa.Offer{PrivateData: make([]byte, room(t, p)+1)}})
	if !n.FellBack || n.Enhanced {
		t.Errorf("negotiated %+v", n)
	}
	only := without(p)
	only.NoFallback = true
	_, err := s.dial(t, iwarp.Dialer{Preset: only, MPA: mpa.Offer{PrivateData: make([]byte, room(t, p)+1)}})
	wantStartupEnd(t, err)
	wantRefused(t, <-s.ended, peers.Resets, overlong(t, p))
}

// splitConn sends every write in two.
type splitConn struct{ net.Conn }

func (c splitConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b[:len(b)/2])
	if err != nil {
		return n, err
	}
	m, err := c.Conn.Write(b[len(b)/2:])
	return n + m, err
}

// inTwoSegments has the longest frame reach irdma in one segment, as it leaves us,
// and in two.
func inTwoSegments(t *testing.T, p *iwarp.Preset) {
	for _, split := range []bool{false, true} {
		a, b := rig.NewPipe(t)
		ended := make(chan error, 1)
		go func() {
			row := peerRow(t, p.Name)
			_, err := peersim.Respond(&row, b, peersim.Consumer{})
			ended <- err
		}()
		if split {
			a = splitConn{a}
		}
		d := iwarp.Dialer{Preset: p, MPA: mpa.Offer{PrivateData: make([]byte, mpa.MaxEnhancedPrivateData)}}
		qp, err := d.Initiate(rig.Within(t), a, nil)
		if split {
			wantStartupEnd(t, err)
			wantRefused(t, <-ended, peers.Resets, "segment of its own")
			continue
		}
		rig.Must(t, errors.Join(err, <-ended))
		_ = qp.Abort()
	}
}

// revision1 returns a peer that is set to revision 1, where nothing negotiates depths,
// and the dialect to meet it with.
func revision1(t *testing.T, p *iwarp.Preset) (b peers.Peer, d mpa.Dialect) {
	b = peerRow(t, p.Name)
	b.Revision, b.Highest = 1, 1
	return b, mpa.DialectRFC5044
}

// piped brings a QP up with a scripted peer, by a pipe. dialing: the QP is the
// Initiator's.
func piped(t *testing.T, dialing bool, p *iwarp.Preset, o mpa.Offer) (qp *iwarp.QP, s *peersim.Session) {
	t.Helper()
	b, dialect := revision1(t, p)
	x, y := rig.NewPipe(t)
	up := make(chan error, 1)
	go func() {
		var err error
		if dialing {
			s, err = peersim.Respond(&b, y, peersim.Consumer{})
		} else {
			s, err = peersim.Initiate(&b, y, peersim.Consumer{})
		}
		up <- err
	}()
	var err error
	if dialing {
		o.Dialect = dialect
		qp, err = (&iwarp.Dialer{Preset: p, MPA: o}).Initiate(t.Context(), x, nil)
	} else {
		var req *iwarp.Request
		if req, err = (&iwarp.ListenConfig{Preset: p}).Respond(t.Context(), x, nil); err == nil {
			qp, err = req.Accept(t.Context(), iwarp.AcceptConfig{MPA: o.Answer()})
		}
	}
	rig.Must(t, errors.Join(err, <-up))
	t.Cleanup(func() { _ = qp.Abort() })
	return qp, s
}

// reads has us ask the peer for more Reads at once than its IRD.
func reads(t *testing.T, dialing bool, p *iwarp.Preset) {
	most := int(peerRow(t, p.Name).MaxIRD)
	for _, o := range []mpa.Offer{{}, {IRD: 32, ORD: mpa.Depth(most) + 1}} {
		synctest.Test(t, func(t *testing.T) {
			qp, s := piped(t, dialing, p, o)
			s.HoldReads = true
			if !dialing { // the peer's first FPDU lets us send
				rig.Must(t, s.Read(1))
			}
			for range most + 1 {
				rig.Must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpRead, Remote: iwarp.Remote{STag: 1}}))
			}
			_ = s.SetReadDeadline(time.Now().Add(time.Hour))
			err := s.AwaitReads(most + 1)
			var timeout net.Error
			if exceeds := o.ORD > 0; !exceeds && !(errors.As(err, &timeout) && timeout.Timeout()) {
				t.Errorf("with the preset: %v, want silence after %d Reads", err, most)
			} else if exceeds {
				wantRefused(t, err, peers.Closes, "Read Request")
			}
			_ = qp.Abort()
			_ = s.Close()
			synctest.Wait()
		})
	}
}

func ordDialing(t *testing.T, p *iwarp.Preset)   { reads(t, true, p) }
func ordAccepting(t *testing.T, p *iwarp.Preset) { reads(t, false, p) }

// asked has the peer ask us for as many Reads at once as it can.
func asked(t *testing.T, dialing bool, p *iwarp.Preset) {
	most := peerRow(t, p.Name).MaxORD
	for _, o := range []mpa.Offer{{}, {IRD: most / 4, ORD: 1}} {
		synctest.Test(t, func(t *testing.T) {
			qp, s := piped(t, dialing, p, o)
			if dialing { // our first FPDU lets the peer send
				rig.Must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("go on")}))
				if _, err := s.Receive(); err != nil {
					t.Fatal(err)
				}
			}
			err := s.Read(int(most))
			switch {
			case o.IRD == 0 && err != nil:
				t.Errorf("with the preset: %v", err)
			case o.IRD != 0:
				wantTerminated(t, err, rdmap.CodeDDPInvalidMSNRange)
			}
			_ = qp.Abort()
			_ = s.Close()
			synctest.Wait()
		})
	}
}

func irdDialing(t *testing.T, p *iwarp.Preset)   { asked(t, true, p) }
func irdAccepting(t *testing.T, p *iwarp.Preset) { asked(t, false, p) }
