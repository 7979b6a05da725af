package iwarp_test

import (
	"bytes"
	"crypto/tls"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
)

// A keeping is a TLS listener that keeps what it has accepted.
type keeping struct {
	net.Listener
	accepted chan *tls.Conn
}

func (k keeping) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err == nil {
		k.accepted <- c.(*tls.Conn)
	}
	return c, err
}

// TestChannelBinding: two programs over TLS have the same keying material of their connection, to bind to it what they
// authenticate in their own messages.
func TestChannelBinding(t *testing.T) {
	var s setup
	server := new(transport).encrypt(t, &s)
	var client *tls.Conn
	encrypt := s.Wrap
	s.Wrap = func(c net.Conn) (net.Conn, error) {
		c, err := encrypt(c)
		client, _ = c.(*tls.Conn)
		return c, err
	}
	k := keeping{tls.NewListener(listenTCP(t), server), make(chan *tls.Conn, 1)}
	ln := iwarp.NewListener(k, iwarp.ListenConfig{})
	t.Cleanup(func() { _ = ln.Close() })
	ini, res := newEnd(t, iwarp.RNICConfig{}), &end{t: t}
	accepted := res.takes(ln, iwarp.AcceptConfig{})
	must(t, <-ini.dials(iwarp.Dialer{PD: ini.pd, Wrap: s.Wrap}, ln))
	must(t, <-accepted)
	binding := func(c *tls.Conn) []byte {
		state := c.ConnectionState()
		b, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
		must(t, err)
		return b
	}
	if here, there := binding(client), binding(<-k.accepted); !bytes.Equal(here, there) {
		t.Errorf("% x, and % x at the server", here, there)
	}
	finish(t, ini, res)
}
