package sctp

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// TestSCTPStartups counts what comes of sessions at both ends: one that comes up, one that is rejected, one that is
// given up before it is, and one that nobody answers. The Listener takes one at a time from an address, so that each
// has given its place back.
func TestSCTPStartups(t *testing.T) {
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	ln, err := (&iwarp.ListenConfig{
		Network: new(iwarpsctp.Network), PD: res.PD, MaxPerSource: 1, RequestTimeout: -1,
	}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	dial := func(ctx context.Context, addr net.Addr) <-chan error {
		return rig.DialInBackground(t, func() (err error) {
			ini.QP, err = (&iwarp.Dialer{PD: ini.PD, Network: new(iwarpsctp.Network),
				Timeout: time.Minute}).Dial(ctx, "sctp4", addr.String())
			return err
		})
	}
	dialed := dial(rig.Within(t), ln.Addr())
	rig.Must(t, <-res.Takes(ln, iwarp.AcceptConfig{}))
	rig.Must(t, <-dialed)
	rig.Finish(t, ini, res)

	dialed = dial(rig.Within(t), ln.Addr())
	req, err := ln.Accept(rig.Within(t))
	rig.Must(t, err)
	if err := req.Reject(make([]byte, 600)); !errors.Is(err, mpa.ErrOffer) { // which leaves the Request as it is
		t.Errorf("too much private data: %v", err)
	}
	err = req.Reject(nil)
	rig.Must(t, err)
	if err := <-dialed; !errors.As(err, new(*iwarp.RejectError)) {
		t.Errorf("rejected: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	dialed = dial(ctx, ln.Addr())
	req, err = ln.Accept(rig.Within(t))
	rig.Must(t, err)
	cancel()
	if err := <-dialed; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	rig.Until(t, func() bool { // what cannot be said is refused, until the peer has withdrawn
		err = req.Reject(make([]byte, 600))
		return !errors.Is(err, mpa.ErrOffer)
	}, "the news that the Dial was given up")
	if err == nil {
		t.Error("a session that was given up is rejected")
	}

	silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer silent.Close()
	if err := <-dial(ctx, silent.LocalAddr()); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody: %v", err)
	}
	rig.WantStartups(t, "the Initiator", ini, iwarp.StartupStats{Started: 4, Established: 1, Rejected: 1,
		Failed: map[string]uint64{"given up": 2}})
	rig.WantStartups(t, "the Responder", res, iwarp.StartupStats{Started: 3, Established: 1, Rejected: 1,
		Failed: map[string]uint64{"other": 1}})
	if s := ln.Stats(); s.Started != 3 || s.Established != 1 || s.Rejected != 1 || s.Failed["other"] != 1 {
		t.Errorf("the Listener has counted %+v", s)
	}
}

// TestSCTPKernelAddresses: what is no address is told, by whichever SCTP it would be used.
func TestSCTPKernelAddresses(t *testing.T) {
	for _, c := range []struct{ addr, local, want string }{
		{"127.0.0.1", "127.0.0.1", "missing port"}, {"127.0.0.1:1", "::1", "no suitable address"},
	} {
		d := iwarp.Dialer{Network: new(iwarpsctp.Network),
			Net: net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(c.local)}}}
		if _, err := d.Dial(rig.Within(t), "sctp4:kernel", c.addr); !rig.Contains(err, c.want) {
			t.Errorf("from %s to %s: %v", c.local, c.addr, err)
		}
	}
}

// TestSCTPSocketGoes: the socket of a Dial is closed with the only association on it, so that its port is free.
func TestSCTPSocketGoes(t *testing.T) {
	ini, res := overSCTP().Connect(t)
	local := ini.LocalAddr().String()
	rig.Finish(t, ini, res)
	rig.Until(t, func() bool {
		pc, err := net.ListenPacket("udp4", local)
		if err == nil {
			err = pc.Close()
		}
		return err == nil
	}, "the port "+local)
}

// TestSCTPResolver has a Dial ask the resolver that it was given.
func TestSCTPResolver(t *testing.T) {
	asked := errors.New("asked")
	d := iwarp.Dialer{Network: new(iwarpsctp.Network),
		Net: net.Dialer{Resolver: &net.Resolver{PreferGo: true,
			Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, asked
			}}}}
	if _, err := d.Dial(rig.Within(t), "sctp", "name.invalid:4791"); !rig.Contains(err, "asked") {
		t.Errorf("got %v", err)
	}
}

// TestSCTPNoRoom: an association beyond the bound of its address is ended and counted, and so is a session of one that
// is up; and one that has come to nothing when the Listener is closed does not outlive it.
//
// Proves Z04.
func TestSCTPNoRoom(t *testing.T) {
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), MaxPerSource: 1, RequestTimeout: -1}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	first := rig.NewSCTPPeer(t, ln)
	rig.Until(t, func() bool { return ln.Stats().HalfOpen == 1 }, "the first association")
	if err := <-rig.NewSCTPPeer(t, ln).Lost; !rig.Contains(err, "no room") {
		t.Errorf("a second association: %v", err)
	}
	if n := ln.Stats().Evicted; n != 1 {
		t.Errorf("%d are counted as turned away", n)
	}
	defer first.Opens(0, ln).Abort()
	rig.Must(t, first.Send(sctp.Message{Stream: 2, PPID: 17, Data: []byte("\x00\x00\x00\x01")}))
	if m := first.Hears(); m.Stream != 2 || string(m.Data) != "\x00\x00\x00\x04" {
		t.Errorf("a second session: %+v", m)
	}
	if s := ln.Stats(); s.Evicted != 2 || s.Started != 1 {
		t.Errorf("counted %+v", s)
	}

	unused, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), RequestTimeout: -1}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	waits := rig.NewSCTPPeer(t, unused)
	rig.Until(t, func() bool { return unused.Stats().HalfOpen == 1 }, "an association")
	rig.Must(t, unused.Close())
	if err := <-waits.Lost; !rig.Contains(err, "not listening any more") {
		t.Errorf("lost: %v", err)
	}
}
