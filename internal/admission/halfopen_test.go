package admission

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// A visitor is a connection of a test that has a slot, or none.
type visitor struct {
	*Slot
	err     error
	why     error // it gave way
	gaveWay int   // so often
}

// comes has a connection come from an address.
func comes(t *Table, from string) *visitor {
	v := new(visitor)
	addr := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 1))
	v.Slot, v.err = t.Enter(addr, func(why error) { v.why, v.gaveWay = why, v.gaveWay+1 })
	return v
}

// wasEvicted wants a half-open connection to have been evicted, once, or not.
func (v *visitor) wasEvicted(t *testing.T, want bool) {
	t.Helper()
	if is := v.gaveWay == 1 && errors.Is(v.why, ErrEvicted); is != want || v.gaveWay > 1 {
		t.Errorf("gave way %d times, for %v; want %t", v.gaveWay, v.why, want)
	}
}

// waits has a connection come from an address, whose Request waits for Accept.
func waits(t *Table, from string) *visitor {
	v := comes(t, from)
	v.Arrived(func() {})
	v.AwaitAccept()
	return v
}

// TestHalfOpenCount: what waits for Accept counts as half-open, of its source and of all, and is not evicted to make
// room for others of its source; and a source without connections is forgotten.
func TestHalfOpenCount(t *testing.T) {
	const from = "192.0.2.1"
	for what, table := range map[string]*Table{
		"all sources": NewHalfOpenTable(HalfOpenBounds{HalfOpen: 2}),
		"one source":  NewHalfOpenTable(HalfOpenBounds{HalfOpenPerSource: 2}),
	} {
		a, b := waits(table, from), waits(table, from)
		before := len(table.sources)
		if comes(table, from).err == nil {
			t.Errorf("%s: a third slot", what)
		}
		if len(table.sources) != before {
			t.Errorf("%s: %d sources are kept", what, len(table.sources))
		}
		a.Accepted()
		silent := comes(table, from)
		if silent.err != nil {
			t.Fatalf("%s: no slot after an Accept: %v", what, silent.err)
		}
		a.wasEvicted(t, false)
		b.wasEvicted(t, false)
		last := comes(table, from)
		if last.err != nil {
			t.Errorf("%s: no slot in the place of the one that awaits its peer: %v", what, last.err)
		}
		silent.wasEvicted(t, true)
		a.wasEvicted(t, false)
		b.wasEvicted(t, false)
		if halfOpen, accepts := table.Count(); halfOpen != 2 || accepts != 1 {
			t.Errorf("%s: %d half-open, %d wait for Accept", what, halfOpen, accepts)
		}
		for _, v := range []*visitor{a, b, silent, last} {
			v.Leave()
			v.Leave()
		}
		if halfOpen, _ := table.Count(); halfOpen != 0 || len(table.sources) != 0 ||
			table.all != 0 || table.leaving != 0 {
			t.Errorf("%s: %d half-open, %d sources, %d connections in the end, %d leave",
				what, halfOpen, len(table.sources), table.all, table.leaving)
		}
	}
}

// TestSlotKeepsNoChannel: a slot, which lasts as long as its connection, holds the channel of a Request that waits no
// longer than that waits, be it accepted or evicted.
func TestSlotKeepsNoChannel(t *testing.T) {
	for what, end := range map[string]func(*Slot){"Accept": func(p *Slot) { p.Accepted() },
		"another that needs its room": (*Slot).evict} {
		p := comes(newHalfOpen(0), "192.0.2.1").Slot
		if out := p.AwaitAccept(); out == nil || p.out == nil {
			t.Fatalf("%s: nothing to wait for", what)
		}
		if end(p); p.out != nil {
			t.Errorf("after %s the slot has a channel", what)
		}
	}
}

// TestSlotKeepsNoConnection: a slot that was given back does not keep the connection.
func TestSlotKeepsNoConnection(t *testing.T) {
	v := comes(newHalfOpen(0), "192.0.2.1")
	v.Established(func(error) {})
	if v.Leave(); v.giveWay != nil {
		t.Error("the slot can end the connection")
	}
}

// TestEstablishedGivesWay: a connection that is established is ended as it says then, as long as it may be; also one
// that has given its slot back meanwhile.
func TestEstablishedGivesWay(t *testing.T) {
	table := newHalfOpen(1)
	v := comes(table, "192.0.2.1")
	ended := 0
	if !v.Established(func(error) { ended++ }) {
		t.Error("it is said to have been evicted")
	}
	comes(table, "192.0.2.1")
	if v.wasEvicted(t, false); ended != 1 || v.Heard() || v.Established(nil) || v.Accepted() || v.Arrived(nil) {
		t.Errorf("ended %d times", ended)
	}
	table.mu.Lock()
	victim, _ := table.room(table.source(v.of.prefix))
	table.mu.Unlock()
	victim.Leave()
	victim.Established(func(error) { t.Error("ended as one that has left") })
	victim.closeVictim()
}

// TestOwnSourceFirst: where another source has as many as the new connection's own, its own makes room, though the
// other's is older.
func TestOwnSourceFirst(t *testing.T) {
	table := newHalfOpen(2)
	other, own := comes(table, "192.0.2.1"), comes(table, "192.0.2.2")
	if v := comes(table, "192.0.2.2"); v.err != nil {
		t.Error(v.err)
	}
	other.wasEvicted(t, false)
	own.wasEvicted(t, true)
}

// TestTurnedAwaySource: of a source for which there is no room nothing is kept.
func TestTurnedAwaySource(t *testing.T) {
	table := newHalfOpen(1)
	waits(table, "192.0.2.1")
	if comes(table, "192.0.2.2").err == nil || len(table.sources) != 1 {
		t.Errorf("%d sources are known", len(table.sources))
	}
}

// TestPerSource: of a source that has as many connections as it may have nobody gives way to one more, and one that has
// left makes room.
func TestPerSource(t *testing.T) {
	table := NewHalfOpenTable(HalfOpenBounds{PerSource: 2})
	a, b := comes(table, "192.0.2.1"), comes(table, "192.0.2.1")
	b.Heard()
	full(t, comes(table, "192.0.2.1"), 2, true)
	a.wasEvicted(t, false)
	if v := comes(table, "192.0.2.2"); v.err != nil {
		t.Errorf("another source: %v", v.err)
	}
	b.Leave()
	if v := comes(table, "192.0.2.1"); v.err != nil {
		t.Errorf("after one has left: %v", v.err)
	}
}

// TestHalfOpenWithoutBounds: without bounds nobody is evicted.
func TestHalfOpenWithoutBounds(t *testing.T) {
	table := newHalfOpen(0)
	first := comes(table, "192.0.2.1")
	for range 100 {
		if v := comes(table, "192.0.2.1"); v.err != nil {
			t.Fatal(v.err)
		}
	}
	first.wasEvicted(t, false)
}

// TestEvictOne: the oldest connection that awaits its peer is evicted, each once.
func TestEvictOne(t *testing.T) {
	table := newHalfOpen(0)
	a, b := comes(table, "192.0.2.1"), comes(table, "192.0.2.1")
	for i, want := range []struct{ one, a, b bool }{{true, true, false}, {true, true, true}, {false, true, true}} {
		one := table.EvictOne()
		if halfOpen, _ := table.Count(); one != want.one || halfOpen != max(1-i, 0) {
			t.Errorf("call %d: %t, %d half-open", i, one, halfOpen)
		}
		a.wasEvicted(t, want.a)
		b.wasEvicted(t, want.b)
	}
}

// TestEvictOneOfMost: of two sources the one with more connections that await their peers loses its oldest, though the
// other's is older; of two with as many, the one whose oldest has come first.
func TestEvictOneOfMost(t *testing.T) {
	for range 20 { // sources are looked at in any order
		table := newHalfOpen(0)
		few := []*visitor{comes(table, "192.0.2.1"), comes(table, "192.0.2.2")}
		most := []*visitor{comes(table, "192.0.2.3"), comes(table, "192.0.2.3"), comes(table, "192.0.2.3")}
		for i, v := range []*visitor{most[0], most[1], few[0], few[1], most[2]} {
			if !table.EvictOne() || v.gaveWay != 1 {
				t.Fatalf("call %d evicted another than expected", i)
			}
		}
	}
}

// TestEvictOneThatWaits: when none awaits its peer, the oldest that awaits Accept is evicted, of the source that has
// most. The only one of a source is spared.
func TestEvictOneThatWaits(t *testing.T) {
	table := newHalfOpen(0)
	all := []*visitor{comes(table, "192.0.2.1"), comes(table, "192.0.2.2"), comes(table, "192.0.2.2")}
	outs := make([]<-chan struct{}, len(all))
	for i, v := range all {
		v.Arrived(func() {})
		outs[i] = v.AwaitAccept()
	}
	if !table.EvictOne() || table.EvictOne() {
		t.Fatal("not one was evicted, but none or two")
	}
	for i, v := range all {
		v.wasEvicted(t, i == 1)
		told := false // who offers it to Accept, which does so no longer
		select {
		case <-outs[i]:
			told = true
		default:
		}
		if told != (i == 1) || v.Accepted() == (i == 1) {
			t.Errorf("Request %d: told to wait no longer: %t", i, told)
		}
	}
	all[1].Leave()
	if halfOpen, waiting := table.Count(); halfOpen != 0 || waiting != 0 ||
		len(table.sources) != 2 || all[2].of.all != 1 {
		t.Errorf("%d half-open, %d wait for Accept; sources: %v", halfOpen, waiting, table.sources)
	}
}

// TestAwaitPeerAgain: a connection that awaits its peer again takes the place of another of the same source, and may
// give way in its turn. It does so also where nobody gives way to it, as its Request was accepted.
func TestAwaitPeerAgain(t *testing.T) {
	table := newHalfOpen(1)
	accepted := waits(table, "192.0.2.1")
	accepted.Accepted()
	silent := comes(table, "192.0.2.1")
	accepted.AwaitPeer()
	silent.wasEvicted(t, true)
	if halfOpen, _ := table.Count(); halfOpen != 1 {
		t.Errorf("%d half-open", halfOpen)
	}
	comes(table, "192.0.2.1")
	accepted.wasEvicted(t, true)

	table = newHalfOpen(1)
	accepted = waits(table, "192.0.2.1")
	accepted.Accepted()
	waits(table, "192.0.2.1")
	accepted.AwaitPeer()
	if halfOpen, waiting := table.Count(); halfOpen != 2 || waiting != 1 {
		t.Errorf("%d half-open, %d wait for Accept", halfOpen, waiting)
	}
}

// TestArrived: a Request that will not come is said to have failed, unless its connection was evicted.
func TestArrived(t *testing.T) {
	table := newHalfOpen(0)
	v, failed := comes(table, "192.0.2.1"), 0
	if !v.Arrived(func() { failed++ }) || failed != 1 {
		t.Errorf("failed %d times", failed)
	}
	v.AwaitPeer()
	if !table.EvictOne() || v.Arrived(func() { failed++ }) || failed != 1 {
		t.Errorf("failed %d times after it was evicted", failed)
	}
}
