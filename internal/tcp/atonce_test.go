package tcp

import (
	"net"
	"testing"
)

// A delaying connection has the Nagle algorithm on until it is told otherwise, as TCP may have.
type delaying struct {
	net.Conn
	off bool
}

func (d *delaying) SetNoDelay(yes bool) error { d.off = yes; return nil }

// A built connection lies on another, as that of TLS does.
type built struct {
	net.Conn
	on net.Conn
}

func (b built) NetConn() net.Conn { return b.on }

// TestSendsAtOnce turns the Nagle algorithm off that the owner of a connection has turned on, also beneath another
// layer.
//
// Proves S04.
func TestSendsAtOnce(t *testing.T) {
	for _, layered := range []bool{false, true} {
		a, b := net.Pipe()
		d := &delaying{Conn: a}
		var c net.Conn = d
		if layered {
			c = built{a, d}
		}
		New(c).SendAtOnce()
		if !d.off {
			t.Errorf("layered %v: an FPDU waits for an acknowledgement", layered)
		}
		a.Close()
		b.Close()
	}
}
