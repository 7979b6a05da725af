package tcp

import (
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestNoLooksWithinProcess: two ends of one process do not look, whichever comes first. What the process remembers for
// that is gone when a connection is.
func TestNoLooksWithinProcess(t *testing.T) {
	before := len(locals.conns)
	a, b := pair(t)
	a.SetSpin(time.Hour)
	untilLooks(a.spin)
	if !a.looks() {
		t.Fatal("it does not look before the other end is met")
	}
	b.SetSpin(time.Hour)
	if a.looks() || b.spin != nil {
		t.Errorf("the first looks: %t, the second: %t", a.looks(), b.spin != nil)
	}
	c, _ := pair(t)
	c.SetSpin(time.Hour)
	if len(locals.conns) != before+1 {
		t.Errorf("the process remembers %d", len(locals.conns)-before)
	}
	_ = c.Close()
	if len(locals.conns) != before {
		t.Errorf("after Close it remembers %d", len(locals.conns)-before)
	}
	d, _ := pair(t)
	d.SetSpin(time.Hour)
	d.End()
	if len(locals.conns) != before {
		t.Errorf("after End it remembers %d", len(locals.conns)-before)
	}
	e, _ := pair(t)
	e.SetSpin(time.Hour)
	here, there, _ := e.ends()
	locals.conns[[2]netip.AddrPort{here, there}] = d // which has the addresses now
	_ = e.Close()
	if len(locals.conns) != before+1 {
		t.Error("Close has it forget another connection")
	}
	delete(locals.conns, [2]netip.AddrPort{here, there})
}

// TestBothFamilies: two ends of this process meet, though the listener's socket is for both families.
func TestBothFamilies(t *testing.T) {
	ln, err := net.Listen("tcp", ":0")
	testrig.Must(t, err)
	defer ln.Close()
	client, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)))
	testrig.Must(t, err)
	server, err := ln.Accept()
	testrig.Must(t, err)
	a, b := own(t, client), own(t, server)
	a.SetSpin(time.Hour)
	untilLooks(a.spin)
	b.SetSpin(time.Hour)
	if a.looks() || b.spin != nil {
		t.Error("they do not know each other")
	}
}
