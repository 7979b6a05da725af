package tcp

import (
	"testing"
	"time"
)

// TestPath asks for the round trip on the loopback interface, also below another
// connection, and for bytes that cannot be sent, as the peer reads none.
func TestPath(t *testing.T) {
	a, b := pair(t)
	for _, c := range []*Conn{a, New(&onSocket{Conn: b.Conn})} {
		if p, ok := c.Path(); !ok || p.RTT <= 0 || p.RTT > time.Minute || p.Unsent {
			t.Errorf("%+v, %t", p, ok)
		}
	}
	for block := make([]byte, 1<<20); ; {
		if _, wait, err := a.TrySend([][]byte{block}); err != nil {
			t.Fatal(err)
		} else if wait {
			break
		}
	}
	if p, ok := a.Path(); !ok || !p.Unsent {
		t.Errorf("with a full buffer: %+v, %t", p, ok)
	}
	if p, ok := New(&recorder{}).Path(); ok {
		t.Errorf("without TCP: %+v", p)
	}
	a.Close()
	if p, ok := a.Path(); ok {
		t.Errorf("closed: %+v", p)
	}
}
