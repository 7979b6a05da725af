package sctp

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// counted is a socket that counts its packets.
type counted struct {
	iwarpsctp.UDPSocket
	sent, received *atomic.Int64
}

func (c counted) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	c.sent.Add(1)
	return c.UDPSocket.WriteToUDPAddrPort(b, to)
}

func (c counted) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	n, from, err := c.UDPSocket.ReadFromUDPAddrPort(b)
	if err == nil {
		c.received.Add(1)
	}
	return n, from, err
}

// TestWrapUDP: all packets of both ends pass the sockets that take the place of theirs.
func TestWrapUDP(t *testing.T) {
	t.Parallel()
	var sent, received [2]atomic.Int64
	wrap := func(i int) func(iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket, error) {
		return func(s iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket, error) {
			return counted{s, &sent[i], &received[i]}, nil
		}
	}
	s := newSharers(t)
	rig.Must(t, s.ln.Close())
	ln, err := (&iwarp.ListenConfig{Network: &iwarpsctp.Network{WrapUDP: wrap(1)}, RequestTimeout: -1}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	s.ln, s.over.WrapUDP = ln, wrap(0)
	ini, res := s.dial()
	s.says(ini, res, "there")
	s.says(res, ini, "and back")
	rig.CloseBoth(t, ini, res)
	for i := range sent {
		if sent[i].Load() < 5 || received[i].Load() < 5 { // INIT and its kin, DATA, SACK
			t.Errorf("end %d: %d packets sent, %d received", i, sent[i].Load(), received[i].Load())
		}
	}
}

// TestWrapUDPFails: the error is told, and the socket closed. What is no socket is the consumer's mistake.
func TestWrapUDPFails(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	var given iwarpsctp.UDPSocket
	fails := func(s iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket, error) { given = s; return nil, failed }
	nothing := func(s iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket, error) { given = s; return nil, nil }
	wantClosed := func() {
		t.Helper()
		if _, _, err := given.ReadFromUDPAddrPort(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the socket is open: %v", err)
		}
	}
	for _, c := range []struct {
		wrap func(iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket, error)
		want error
	}{{fails, failed}, {nothing, iwarp.ErrInvalid}} {
		over := &iwarpsctp.Network{WrapUDP: c.wrap}
		if _, err := (&iwarp.Dialer{Network: over}).Dial(rig.Within(t), "sctp4",
			"127.0.0.1:1"); !errors.Is(err, c.want) {
			t.Errorf("dialed: %v", err)
		}
		wantClosed()
		if _, err := (&iwarp.ListenConfig{Network: over}).Listen(
			rig.Within(t), "sctp4", "127.0.0.1:0"); !errors.Is(err, c.want) {
			t.Errorf("listening: %v", err)
		}
		wantClosed()
	}
	rig.MustPanic(t, func() {
		d := iwarp.Dialer{Network: &iwarpsctp.Network{WrapUDP: func(s iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket,
			error) {
			given = s
			panic("WrapUDP")
		}}}
		_, _ = d.Dial(rig.Within(t), "sctp4", "127.0.0.1:1")
	})
	wantClosed()
}

// TestWrapUDPElsewhere: where there is no such socket, it is refused.
func TestWrapUDPElsewhere(t *testing.T) {
	t.Parallel()
	wrap := func(s iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket, error) { return s, nil }
	for _, network := range []string{"tcp4", "sctp4:kernel"} {
		over := &iwarpsctp.Network{WrapUDP: wrap}
		if _, err := (&iwarp.Dialer{Network: over}).Dial(rig.Within(t), network,
			"127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: dialed: %v", network, err)
		}
		if _, err := (&iwarp.ListenConfig{Network: over}).Listen(
			rig.Within(t), network, "127.0.0.1:0"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: listening: %v", network, err)
		}
	}
}
