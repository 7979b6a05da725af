package iwarp_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/carrier"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/sctp"
)

// TestSCTPTurnedAway: a peer that ends the association right after the handshake is not waited for.
func TestSCTPTurnedAway(t *testing.T) {
	ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{MaxPerSource: 1, RequestTimeout: -1})
	must(t, err)
	defer ln.Close()
	go func() { _, _ = iwarp.Dial(t.Context(), "sctp4", ln.Addr().String()) }()
	_, err = ln.Accept(within(t)) // it has the one place
	must(t, err)
	for range 20 {
		_, err := iwarp.Dial(within(t), "sctp4", ln.Addr().String())
		if !errors.Is(err, carrier.ErrAborted) && !errors.Is(err, carrier.ErrRefused) {
			t.Errorf("got %v", err)
		}
	}
}

// TestSCTPNeverAccepted: the error of a context says what was waited for.
func TestSCTPNeverAccepted(t *testing.T) {
	ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{RequestTimeout: -1})
	must(t, err)
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := ln.Accept(within(t))
		must(t, err)
		cancel()
	}()
	_, err = iwarp.Dial(ctx, "sctp4", ln.Addr().String())
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "no answer to an Initiate") {
		t.Errorf("got %v", err)
	}
}

// TestSCTPAddresses: on sockets of all addresses too, each side has the address that the other reaches it by.
func TestSCTPAddresses(t *testing.T) {
	t.Parallel()
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	ln, err := iwarp.Listen(within(t), "sctp4", ":0", iwarp.ListenConfig{PD: res.pd, RequestTimeout: -1})
	must(t, err)
	defer ln.Close()
	accepted := res.takes(ln, iwarp.AcceptConfig{})
	d := iwarp.Dialer{PD: ini.pd, Timeout: time.Minute}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	must(t, err)
	ini.QP, err = d.Dial(within(t), "sctp4", "127.0.0.1:"+port)
	must(t, err)
	must(t, <-accepted)
	for _, e := range [][2]*end{{ini, res}, {res, ini}} {
		if here, there := e[0].LocalAddr().String(), e[1].RemoteAddr().String(); here != there || !strings.HasPrefix(here, "127.0.0.1:") {
			t.Errorf("%s here, and %s to the peer", here, there)
		}
	}
	if text := ini.String(); strings.Contains(text, "0.0.0.0") {
		t.Error(text)
	}
	finish(t, ini, res)
}

// TestSCTPFallbackRefused: the error of a second attempt names what SCTP has, not MPA's revisions; the log has that
// there is one, and where.
func TestSCTPFallbackRefused(t *testing.T) {
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	e := sctpudp.New(pc, true, sctpudp.Config{})
	defer e.Close()
	go func() {
		for {
			c, err := e.Accept(within(t))
			if err != nil {
				return
			}
			refuse := func(sctp.Message) { _ = c.Send(sctp.Message{PPID: 17, Data: []byte("\x00\x00\x00\x04")}) }
			go c.Run(refuse, func(uint16, uint64) {}, func(error) {})
		}
	}()
	l := &listening{t: t, said: map[string]bool{}}
	d := iwarp.Dialer{Timeout: time.Minute, PD: newPD(t, newRNIC(t, iwarp.RNICConfig{Logger: slog.New(handler(l.hear))}))}
	_, err = d.Dial(within(t), "sctp4", pc.LocalAddr().String())
	if err == nil || !strings.Contains(err.Error(), "retried with an unenhanced Initiate: ") || strings.Contains(err.Error(), "revision") {
		t.Errorf("got %v", err)
	}
	if !l.has("iwarp: trying again with an unenhanced Initiate") {
		t.Errorf("logged %v", l.said)
	}
}
