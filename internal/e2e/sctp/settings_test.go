package sctp

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
	"github.com/goiwarp/iwarp/usertcp"
)

// TestSCTPHasNone: what only MPA and TCP have is refused over SCTP before there is an association, a Dialer with Wrap
// above all: nothing goes out in clear, not even one packet. The peer, which would get it first, gets what is sent
// after the calls.
func TestSCTPHasNone(t *testing.T) {
	peer, err := net.ListenPacket("udp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer peer.Close()
	for what, d := range map[string]iwarp.Dialer{
		"Dialer.Wrap":                  {Wrap: func(c net.Conn) (net.Conn, error) { return c, nil }},
		"Dialer.Stack":                 {Stack: new(usertcp.Stack)},
		"Dialer.MPA: sctp: Markers: ":  {MPA: mpa.Offer{Markers: true}},
		"Dialer.MPA: sctp: NoCRC: ":    {MPA: mpa.Offer{NoCRC: true}},
		"Dialer.MPA: sctp: Kind: ":     {MPA: mpa.Offer{Kind: mpa.KindRDMAC}},
		"Dialer.MPA: sctp: Dialect: ":  {MPA: mpa.Offer{Dialect: mpa.DialectRtr}},
		"sctp: Kind: RDMAC RNICs have": {PD: rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Kind: mpa.KindRDMAC}))},
	} {
		d.Network = new(iwarpsctp.Network)
		_, err := d.Dial(rig.Within(t), "sctp4", peer.LocalAddr().String())
		if !errors.Is(err, iwarp.ErrInvalid) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	_, err = (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), Stack: new(usertcp.Stack)}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	if !errors.Is(err, iwarp.ErrInvalid) || !strings.Contains(err.Error(), "ListenConfig.Stack") {
		t.Errorf("listening with a Stack: %v", err)
	}
	_, err = peer.WriteTo([]byte("after"), peer.LocalAddr())
	rig.Must(t, err)
	buf := make([]byte, 2000)
	n, _, err := peer.ReadFrom(buf)
	rig.Must(t, err)
	if string(buf[:n]) != "after" {
		t.Errorf("sent % x", buf[:n])
	}
}

// TestSCTPLocalAddr: an address to connect from is used, of whatever type that has an IP address, and others are
// refused.
func TestSCTPLocalAddr(t *testing.T) {
	t.Parallel()
	here := net.IPv4(127, 0, 0, 2)
	if pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: here}); err != nil {
		t.Skipf("not on this system: %v", err)
	} else {
		rig.Must(t, pc.Close())
	}
	for _, local := range []net.Addr{&net.TCPAddr{IP: here}, &net.UDPAddr{IP: here}, &net.IPAddr{IP: here}} {
		s := overSCTP()
		s.Net.LocalAddr = local
		ini, res := s.Connect(t)
		if got := res.RemoteAddr().(*net.UDPAddr); !got.IP.Equal(here) {
			t.Errorf("%T: connected from %v", local, got)
		}
		rig.Finish(t, ini, res)
	}
	for _, local := range []net.Addr{(*net.TCPAddr)(nil), (*net.UDPAddr)(nil), (*net.IPAddr)(nil)} {
		s := overSCTP()
		s.Net.LocalAddr = local
		ini, res := s.Connect(t)
		rig.Finish(t, ini, res)
	}
	d := iwarp.Dialer{Network: new(iwarpsctp.Network),
		Net: net.Dialer{LocalAddr: &net.UnixAddr{Name: "here", Net: "unix"}}}
	if _, err := d.Dial(rig.Within(t), "sctp4", "127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) ||
		!strings.Contains(err.Error(), "LocalAddr") {
		t.Errorf("got %v", err)
	}
}

// TestSCTPStats: what a peer says outside of any session, and in order, does no harm, and the Network counts it.
func TestSCTPStats(t *testing.T) {
	ctx := rig.Within(t)
	over := new(iwarpsctp.Network)
	ln, err := (&iwarp.ListenConfig{Network: over}).Listen(ctx, "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	conn, err := net.Dial("udp4", ln.Addr().String())
	rig.Must(t, err)
	until, _ := ctx.Deadline()
	peer, err := script.Associate(ctx, conn, script.DDPSetup(), until)
	rig.Must(t, err)
	defer peer.Close()
	peer.Send(sctp.Message{PPID: sctp.PPIDSegment, Data: []byte{0, 0, 'A'}})
	initiate := peer.Session(0).Function(sctp.FunctionInitiate)
	initiate.Ordered = true
	peer.Send(initiate)
	if !peer.Settle(until) {
		t.Fatal("not acknowledged")
	}
	req, err := ln.Accept(ctx)
	rig.Must(t, err)
	if got := over.Stats(); got != (sctp.Stats{Ordered: 1, Dropped: 1}) {
		t.Errorf("counted %+v", got)
	}
	err = req.Reject(nil)
	rig.Must(t, err)
	if got := over.Stats(); got != (sctp.Stats{Ordered: 1, Dropped: 1}) {
		t.Errorf("counted twice: %+v", got)
	}
}

// TestSCTPElsewhere: without the package that has SCTP, the error of Dial and of Listen says what to import, and what
// to set.
func TestSCTPElsewhere(t *testing.T) {
	const name = "github.com/goiwarp/iwarp/iwarpsctp, and set "
	for _, network := range []string{"sctp", "sctp4", "sctp:udp", "sctp6:kernel"} {
		_, err := iwarp.Dial(rig.Within(t), network, "127.0.0.1:1")
		rig.WantSaid(t, network, err, iwarp.ErrInvalid, name+"Dialer.Network to new(iwarpsctp.Network)")
		_, err = iwarp.Listen(rig.Within(t), network, "127.0.0.1:0")
		rig.WantSaid(t, network, err, iwarp.ErrInvalid, name+"ListenConfig.Network to new(iwarpsctp.Network)")
	}
}
