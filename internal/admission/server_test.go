package admission

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// silenced reports whether the visitor had to give way.
func (v *visitor) silenced() bool { return errors.Is(v.why, ErrSilent) }

// full wants a visitor to have no place, as there are so many.
func full(t *testing.T, v *visitor, connections int, same bool) {
	t.Helper()
	if e := (*FullError)(nil); !errors.As(v.err, &e) || *e != (FullError{connections, same}) {
		t.Errorf("got %v, want %v", v.err, &FullError{connections, same})
	}
}

// TestMostSilentGivesWay: of the source that has most, and only after it has been silent for a while.
func TestMostSilentGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewServerTable(4, Silence)
		other := comes(p, "192.0.2.2")
		var crowd []*visitor
		for range 3 {
			time.Sleep(time.Minute)
			crowd = append(crowd, comes(p, "192.0.2.1"))
		}
		crowd[0].Moved()
		time.Sleep(Silence - 1)
		crowd[0].Moved()
		time.Sleep(time.Nanosecond)
		if v := comes(p, "192.0.2.3"); v.err != nil || other.silenced() || crowd[0].silenced() ||
			!crowd[1].silenced() || crowd[2].silenced() {
			t.Errorf("one more: %v; who gave way: %v, %v, %v, %v",
				v.err, other.silenced(), crowd[0].silenced(), crowd[1].silenced(), crowd[2].silenced())
		}
		for _, v := range []*visitor{other, crowd[0], crowd[2]} {
			v.Moved()
		}
		full(t, comes(p, "192.0.2.4"), 4, false)
		other.Leave()
		if v := comes(p, "192.0.2.4"); v.err != nil {
			t.Errorf("in the place of one that left: %v", v.err)
		}
	})
}

// TestShare: one source has three quarters, whose own most silent one gives way to more of it.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewServerTable(4, Silence)
		other := comes(p, "192.0.2.2")
		time.Sleep(time.Hour)
		for range 3 {
			comes(p, "192.0.2.1")
		}
		full(t, comes(p, "192.0.2.1"), 3, true)
		time.Sleep(Silence)
		if v := comes(p, "192.0.2.1"); v.err != nil || other.silenced() {
			t.Errorf("got %v, the other's gave way: %v", v.err, other.silenced())
		}
	})
}

// TestLeaving bounds those that have given way and do not end, and counts each once however often it leaves.
func TestLeaving(t *testing.T) {
	p := NewServerTable(1, 0)
	last := comes(p, "192.0.2.1")
	var slow []*visitor
	for range maxLeaving {
		slow = append(slow, last)
		last = comes(p, "192.0.2.1")
	}
	full(t, comes(p, "192.0.2.1"), 1, true)
	last.Leave() // which has not given way
	comes(p, "192.0.2.1")
	if p.leaving != maxLeaving {
		t.Errorf("%d have given way and not left", p.leaving)
	}
	slow[0].Leave()
	if p.leaving != maxLeaving-1 {
		t.Errorf("%d have given way and not left, after one has", p.leaving)
	}
	slow[0].Leave()
	if v := comes(p, "192.0.2.1"); v.err != nil {
		t.Errorf("after one has ended: %v", v.err)
	}
	full(t, comes(p, "192.0.2.1"), 1, true)
}

// TestStay: who stays gives way to nobody, and leaves the share of its source to others.
func TestStay(t *testing.T) {
	p := NewServerTable(4, 0)
	var all []*visitor
	for range 4 {
		all = append(all, comes(p, "192.0.2.1"))
		all[len(all)-1].Stay(true)
	}
	full(t, comes(p, "192.0.2.2"), 4, false)
	full(t, comes(p, "192.0.2.1"), 4, false)
	all[2].Stay(false)
	if v := comes(p, "192.0.2.2"); v.err != nil || all[0].silenced() || !all[2].silenced() {
		t.Errorf("one that stays no more did not give way: %v", v.err)
	}
}

// TestNoBound has any number of connections, and one that is in no Table.
func TestNoBound(t *testing.T) {
	p := NewServerTable(0, 0)
	for range 1000 {
		if v := comes(p, "192.0.2.1"); v.err != nil {
			t.Fatal(v.err)
		}
	}
	(*Slot)(nil).Moved()
}

// TestEldest: of one source the connection gives way on which nothing has moved for longest, whatever the order in
// which they have come.
func TestEldest(t *testing.T) {
	for _, silence := range []time.Duration{0, Silence} {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
			synctest.Test(t, func(t *testing.T) {
				p := NewServerTable(4, silence)
				all := []*visitor{comes(p, "192.0.2.1"), comes(p, "192.0.2.1"), comes(p, "192.0.2.1")}
				for _, i := range order {
					time.Sleep(Silence)
					all[i].Moved()
				}
				time.Sleep(Silence)
				if v := comes(p, "192.0.2.1"); v.err != nil || !all[order[0]].silenced() || all[order[1]].silenced() ||
					all[order[2]].silenced() {
					t.Errorf("order %v: %v, %v, %v, %v", order, v.err, all[0].why, all[1].why, all[2].why)
				}
			})
		}
	}
}

// TestTexts: a FullError tells whoever is rejected whose connections there are.
func TestTexts(t *testing.T) {
	for same, want := range map[bool]string{true: "3 connections from your address already: try again later",
		false: "3 connections already: try again later"} {
		if got := (&FullError{3, same}).Error(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestMostThatMayGiveWay: who gives way is of the source with most connections on which nothing moves, however many
// others have. Where the newcomer's own has as many, it is one of its own.
func TestMostThatMayGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewServerTable(8, Silence)
		var busy, idle []*visitor
		for range 4 {
			busy = append(busy, comes(p, "192.0.2.1"))
		}
		for range 2 {
			idle = append(idle, comes(p, "192.0.2.2"), comes(p, "192.0.2.3"))
		}
		time.Sleep(Silence)
		for _, v := range busy[1:] {
			v.Moved()
		}
		for i, from := range []string{"192.0.2.3", "192.0.2.4"} {
			if v := comes(p, from); v.err != nil || busy[0].silenced() || !idle[1-i].silenced() {
				t.Errorf("%s: %v", from, v.err)
			}
		}
		if idle[2].silenced() || idle[3].silenced() {
			t.Error("more than one gave way to each")
		}
	})
}

// TestStayAgain: who stays, or does not, may say so again. Who stays no more counts to the share of its source, and is
// kept by it when it was the only one.
func TestStayAgain(t *testing.T) {
	p := NewServerTable(4, 0)
	v := comes(p, "192.0.2.1")
	for range 2 {
		v.Stay(true)
		v.Moved()
		v.Stay(true)
		if n := len(p.sources); n != 0 || v.of.all != 0 {
			t.Errorf("while it stays: %d sources, %d in its own", n, v.of.all)
		}
		v.Stay(false)
		v.Stay(false)
		if n := len(p.sources); n != 1 || v.of.all != 1 || p.all != 1 {
			t.Errorf("when it stays no more: %d sources, %d in its own, %d in all", n, v.of.all, p.all)
		}
	}
	v.Stay(true)
	second := comes(p, "192.0.2.1") // of which its source knows nothing else
	v.Stay(false)
	if v.of != second.of || v.of.all != 2 {
		t.Errorf("%d of its source, %d of that of the second", v.of.all, second.of.all)
	}
	v.Leave()
	second.Leave()
	if len(p.sources) != 0 || p.all != 0 {
		t.Errorf("in the end: %d sources, %d connections", len(p.sources), p.all)
	}
}
