package iwarp_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/usertcp"
)

// TestSCTPHasNone: what only MPA and TCP have is refused over SCTP before there is an association, a Dialer with Wrap above
// all: nothing goes out in clear, not even one packet. The peer, which would get it first, gets what is sent after the calls.
func TestSCTPHasNone(t *testing.T) {
	peer, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(t, err)
	defer peer.Close()
	for what, d := range map[string]iwarp.Dialer{
		"Dialer.Wrap":                   {Wrap: func(c net.Conn) (net.Conn, error) { return c, nil }},
		"Dialer.Stack":                  {Stack: new(usertcp.Stack)},
		"Dialer.MPA: sctp: Markers: ":   {MPA: mpa.Offer{Markers: true}},
		"Dialer.MPA: sctp: NoCRC: ":     {MPA: mpa.Offer{NoCRC: true}},
		"Dialer.MPA: sctp: Kind: ":      {MPA: mpa.Offer{Kind: mpa.KindRDMAC}},
		"Dialer.MPA: sctp: Dialect: ":   {MPA: mpa.Offer{Dialect: mpa.DialectRtr}},
		"ShareAssociation without a PD": {ShareAssociation: true},
		"sctp: Kind: RDMAC RNICs have":  {PD: newPD(t, newRNIC(t, iwarp.RNICConfig{Kind: mpa.KindRDMAC}))},
	} {
		_, err := d.Dial(within(t), "sctp4", peer.LocalAddr().String())
		if !errors.Is(err, iwarp.ErrInvalid) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	_, err = iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{Stack: new(usertcp.Stack)})
	if !errors.Is(err, iwarp.ErrInvalid) || !strings.Contains(err.Error(), "ListenConfig.Stack") {
		t.Errorf("listening with a Stack: %v", err)
	}
	_, err = peer.WriteTo([]byte("after"), peer.LocalAddr())
	must(t, err)
	buf := make([]byte, 2000)
	n, _, err := peer.ReadFrom(buf)
	must(t, err)
	if string(buf[:n]) != "after" {
		t.Errorf("sent % x", buf[:n])
	}
}

// TestNothingToShare: TCP has no associations, whatever the PD.
func TestNothingToShare(t *testing.T) {
	d := iwarp.Dialer{PD: newPD(t, newRNIC(t, iwarp.RNICConfig{})), ShareAssociation: true}
	_, err := d.Dial(within(t), "tcp4", "127.0.0.1:9")
	if !errors.Is(err, iwarp.ErrInvalid) || !strings.Contains(err.Error(), `ShareAssociation is for SCTP, and a QP over "tcp4"`) {
		t.Errorf("dialed: %v", err)
	}
	qp, err := d.PD.CreateQP(iwarp.QPConfig{})
	must(t, err)
	if err := d.DialQP(within(t), qp, "tcp4", "127.0.0.1:9"); !errors.Is(err, iwarp.ErrInvalid) || qp.State() != iwarp.StateIdle {
		t.Errorf("dialed: %v in state %v", err, qp.State())
	}
}

// TestSCTPLocalAddr: an address to connect from is used, of whatever type that has an IP address, and others are refused.
func TestSCTPLocalAddr(t *testing.T) {
	t.Parallel()
	here := net.IPv4(127, 0, 0, 2)
	if pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: here}); err != nil {
		t.Skipf("not on this system: %v", err)
	} else {
		must(t, pc.Close())
	}
	for _, local := range []net.Addr{&net.TCPAddr{IP: here}, &net.UDPAddr{IP: here}, &net.IPAddr{IP: here}} {
		s := overSCTP()
		s.Net.LocalAddr = local
		ini, res := s.connect(t)
		if got := res.RemoteAddr().(*net.UDPAddr); !got.IP.Equal(here) {
			t.Errorf("%T: connected from %v", local, got)
		}
		finish(t, ini, res)
	}
	for _, local := range []net.Addr{(*net.TCPAddr)(nil), (*net.UDPAddr)(nil), (*net.IPAddr)(nil)} {
		s := overSCTP()
		s.Net.LocalAddr = local
		ini, res := s.connect(t)
		finish(t, ini, res)
	}
	d := iwarp.Dialer{Net: net.Dialer{LocalAddr: &net.UnixAddr{Name: "here", Net: "unix"}}}
	if _, err := d.Dial(within(t), "sctp4", "127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) || !strings.Contains(err.Error(), "LocalAddr") {
		t.Errorf("got %v", err)
	}
}
