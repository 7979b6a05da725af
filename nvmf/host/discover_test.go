package host_test

import (
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A catalog is the log of a discovery controller.
type catalog struct {
	header  capsule.DiscoveryHeader
	entries []capsule.DiscoveryEntry
	reads   int
	// change is called before each read.
	change func(c *catalog)
}

func (l *catalog) page(g capsule.GetLogPage) []byte {
	l.reads++
	if l.change != nil {
		l.change(l)
	}
	b := l.header.Append(nil)
	for _, e := range l.entries {
		b = e.Append(b)
	}
	return b[g.Offset:][:g.Dwords*4]
}

// librarian is a peer that is a discovery controller.
func librarian(t *testing.T, l *catalog) *peer {
	p := newPeer(t)
	p.controller = capsule.IdentifyController{Type: capsule.ControllerDiscovery, ControllerID: 7,
		Version: capsule.Version13, MaxData: 1}
	p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
		if q.id == 0 && c.Opcode == capsule.OpGetLogPage {
			a.Status, a.page = capsule.Success, l.page(c.GetLogPage())
		}
		return true
	}
	return p.startServing()
}

// TestDiscover reads a log of more entries than one command takes, and one that changes meanwhile.
func TestDiscover(t *testing.T) {
	t.Parallel()
	want := make([]capsule.DiscoveryEntry, 20)
	for i := range want {
		want[i] = capsule.DiscoveryEntry{
			Transport: capsule.TransportRDMA, Family: capsule.FamilyIPv4, Type: capsule.SubsystemNVM, PortID: uint16(i),
			Service: "4420", SubsystemNQN: nqn, Address: "192.0.2.1",
		}
	}
	l := &catalog{header: capsule.DiscoveryHeader{Generation: 1, Records: 20}, entries: want}
	p := librarian(t, l)
	got, err := p.dialer().Discover(testrig.Within(t), "tcp", "target:4420")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d entries, %v", len(got), err)
	}
	if d := p.connects[0]; d.SubsystemNQN != capsule.DiscoveryNQN || len(p.connects) != 1 {
		t.Errorf("%+v", p.connects)
	}
	l.change = func(l *catalog) {
		if l.reads == 3 {
			l.header.Generation++
			l.entries[0].PortID = 99
		}
	}
	l.reads = 0
	if got, err = p.dialer().Discover(testrig.Within(t), "tcp", "target:4420"); err != nil || got[0].PortID != 99 {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

// TestBadCatalogs has discovery controllers with logs that cannot be read.
func TestBadCatalogs(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*catalog{
		"no end":         {header: capsule.DiscoveryHeader{Records: 1 << 63}},
		"another format": {header: capsule.DiscoveryHeader{Format: 1}},
		"no rest":        {change: func(l *catalog) { l.header.Generation++ }},
	} {
		if got, err := librarian(t, l).dialer().Discover(testrig.Within(t), "tcp", "target:4420"); err == nil {
			t.Errorf("%s: %d entries", name, len(got))
		}
	}
}
