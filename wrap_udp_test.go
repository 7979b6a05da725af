package iwarp_test

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
)

// counted is a socket that counts its packets.
type counted struct {
	iwarp.UDPSocket
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
	wrap := func(i int) func(iwarp.UDPSocket) (iwarp.UDPSocket, error) {
		return func(s iwarp.UDPSocket) (iwarp.UDPSocket, error) { return counted{s, &sent[i], &received[i]}, nil }
	}
	s := newSharers(t)
	must(t, s.ln.Close())
	ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{WrapUDP: wrap(1), RequestTimeout: -1})
	must(t, err)
	s.ln, s.dialer.WrapUDP = ln, wrap(0)
	ini, res := s.dial()
	s.says(ini, res, "there")
	s.says(res, ini, "and back")
	closeBoth(t, ini, res)
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
	var given iwarp.UDPSocket
	fails := func(s iwarp.UDPSocket) (iwarp.UDPSocket, error) { given = s; return nil, failed }
	nothing := func(s iwarp.UDPSocket) (iwarp.UDPSocket, error) { given = s; return nil, nil }
	wantClosed := func() {
		t.Helper()
		if _, _, err := given.ReadFromUDPAddrPort(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the socket is open: %v", err)
		}
	}
	for _, c := range []struct {
		wrap func(iwarp.UDPSocket) (iwarp.UDPSocket, error)
		want error
	}{{fails, failed}, {nothing, iwarp.ErrInvalid}} {
		if _, err := (&iwarp.Dialer{WrapUDP: c.wrap}).Dial(within(t), "sctp4", "127.0.0.1:1"); !errors.Is(err, c.want) {
			t.Errorf("dialed: %v", err)
		}
		wantClosed()
		if _, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{WrapUDP: c.wrap}); !errors.Is(err, c.want) {
			t.Errorf("listening: %v", err)
		}
		wantClosed()
	}
	mustPanic(t, func() {
		d := iwarp.Dialer{WrapUDP: func(s iwarp.UDPSocket) (iwarp.UDPSocket, error) { given = s; panic("WrapUDP") }}
		_, _ = d.Dial(within(t), "sctp4", "127.0.0.1:1")
	})
	wantClosed()
}

// TestWrapUDPElsewhere: where there is no such socket, it is refused.
func TestWrapUDPElsewhere(t *testing.T) {
	t.Parallel()
	wrap := func(s iwarp.UDPSocket) (iwarp.UDPSocket, error) { return s, nil }
	for _, network := range []string{"tcp4", "sctp4:kernel"} {
		if _, err := (&iwarp.Dialer{WrapUDP: wrap}).Dial(within(t), network, "127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: dialed: %v", network, err)
		}
		if _, err := iwarp.Listen(within(t), network, "127.0.0.1:0", iwarp.ListenConfig{WrapUDP: wrap}); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: listening: %v", network, err)
		}
	}
}
