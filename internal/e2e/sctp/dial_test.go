package sctp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/sctp"
)

// TestSCTPTurnedAway: a peer that ends the association right after the handshake is not waited for.
func TestSCTPTurnedAway(t *testing.T) {
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), MaxPerSource: 1, RequestTimeout: -1}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	go func() {
		_, _ = (&iwarp.Dialer{Network: new(iwarpsctp.Network)}).Dial(t.Context(), "sctp4", ln.Addr().String())
	}()
	_, err = ln.Accept(rig.Within(t)) // it has the one place
	rig.Must(t, err)
	for range 20 {
		_, err := (&iwarp.Dialer{Network: new(iwarpsctp.Network)}).Dial(rig.Within(t), "sctp4", ln.Addr().String())
		if !errors.Is(err, lowerlayer.ErrAborted) && !errors.Is(err, lowerlayer.ErrRefused) {
			t.Errorf("got %v", err)
		}
	}
}

// TestSCTPNeverAccepted: the error of a context says what was waited for.
func TestSCTPNeverAccepted(t *testing.T) {
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), RequestTimeout: -1}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := ln.Accept(rig.Within(t))
		rig.Must(t, err)
		cancel()
	}()
	_, err = (&iwarp.Dialer{Network: new(iwarpsctp.Network)}).Dial(ctx, "sctp4", ln.Addr().String())
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "no answer to an Initiate") {
		t.Errorf("got %v", err)
	}
}

// TestSCTPAddresses: on sockets of all addresses too, each side has the address that the other reaches it by.
func TestSCTPAddresses(t *testing.T) {
	t.Parallel()
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), PD: res.PD, RequestTimeout: -1}).Listen(
		rig.Within(t), "sctp4", ":0")
	rig.Must(t, err)
	defer ln.Close()
	accepted := res.Takes(ln, iwarp.AcceptConfig{})
	d := iwarp.Dialer{PD: ini.PD, Network: new(iwarpsctp.Network), Timeout: time.Minute}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	rig.Must(t, err)
	ini.QP, err = d.Dial(rig.Within(t), "sctp4", "127.0.0.1:"+port)
	rig.Must(t, err)
	rig.Must(t, <-accepted)
	for _, e := range [][2]*rig.End{{ini, res}, {res, ini}} {
		if here, there := e[0].LocalAddr().String(), e[1].RemoteAddr().String(); here != there ||
			!strings.HasPrefix(here, "127.0.0.1:") {
			t.Errorf("%s here, and %s to the peer", here, there)
		}
	}
	if text := ini.String(); strings.Contains(text, "0.0.0.0") {
		t.Error(text)
	}
	rig.Finish(t, ini, res)
}

// TestSCTPFallbackRefused: the error of a second attempt names what SCTP has, not MPA's revisions; the log has that
// there is one, and where.
func TestSCTPFallbackRefused(t *testing.T) {
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	rig.Must(t, err)
	e := sctpudp.New(pc, true, sctpudp.Config{})
	defer e.Close()
	go func() {
		for {
			c, err := e.Accept(rig.Within(t))
			if err != nil {
				return
			}
			refuse := func(sctp.Message) { _ = c.Send(sctp.Message{PPID: 17, Data: []byte("\x00\x00\x00\x04")}) }
			go c.Run(refuse, func(uint16, uint64) {}, func(error) {})
		}
	}()
	l := &rig.Listening{T: t, Said: map[string]bool{}}
	d := iwarp.Dialer{Network: new(iwarpsctp.Network), Timeout: time.Minute,
		PD: rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(rig.LogHandler(l.Hear))}))}
	_, err = d.Dial(rig.Within(t), "sctp4", pc.LocalAddr().String())
	if err == nil || !strings.Contains(err.Error(), "retried with an unenhanced Initiate: ") ||
		strings.Contains(err.Error(), "revision") {
		t.Errorf("got %v", err)
	}
	if !l.Has("iwarp: trying again with an unenhanced Initiate") {
		t.Errorf("logged %v", l.Said)
	}
}

// A reluctant socket takes its time with a Terminate.
type reluctant struct {
	iwarpsctp.UDPSocket
	said *atomic.Bool
}

func (r reluctant) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	all, _ := chunk.In(b)
	for _, c := range all {
		d, ok := c.Data()
		m := sctp.Message{PPID: d.PPID, Data: d.Bytes}
		if ok && m.Function() == sctp.FunctionTerminate {
			time.Sleep(50 * time.Millisecond)
			r.said.Store(true)
		}
	}
	return r.UDPSocket.WriteToUDPAddrPort(b, to)
}

// A patient socket is one in memory that waits until it is closed, whatever its deadline.
type patient struct{ *testrig.Socket }

func (patient) SetReadDeadline(time.Time) error { return nil }

// TestSCTPDialFailsThenExit: a program that ends when its Dial has failed takes nothing along: who answers against the
// rules has been sent the Terminate.
//
// RFC 5043, section 6.1: "the DDP Stream Session MUST be terminated." [C04]
func TestSCTPDialFailsThenExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, others := testrig.Link{Delay: time.Millisecond}.Sockets()
		defer others.Close()
		defer time.Sleep(testrig.Soon) // until the association has ended
		ctx := rig.Within(t)
		go answersWithInitiate(ctx, patient{others})
		var said atomic.Bool
		inMemory := func(s iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket,
			error) {
			return reluctant{ours, &said}, s.Close()
		}
		d := iwarp.Dialer{Network: &iwarpsctp.Network{WrapUDP: inMemory}}
		_, err := d.Dial(ctx, "sctp4", others.LocalAddr().String())
		if broken, ok := errors.AsType[*sctp.Violation](err); !ok || broken.Rule != sctp.RuleSequence {
			t.Errorf("Dial: %v", err)
		}
		if !said.Load() {
			t.Error("the program may end, and the peer has not been told")
		}
	})
}

// answersWithInitiate is a peer that asks for a session where it should answer.
func answersWithInitiate(ctx context.Context, pc script.Socket) {
	until, _ := ctx.Deadline()
	a, err := script.Answer(ctx, pc, script.DDPSetup(), until)
	if err != nil {
		return
	}
	if stream, ok := a.Asked(until); ok {
		a.Send(a.Session(stream).Function(sctp.FunctionInitiate))
	}
	for ok := true; ok; {
		_, ok = a.Next(until)
	}
}
