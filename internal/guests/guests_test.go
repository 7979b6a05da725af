package guests

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// A visitor is a connection of a test that has a place, or none.
type visitor struct {
	*Guest
	ctx context.Context
	err error
}

func comes(p *Places, from string) *visitor {
	ctx, giveWay := context.WithCancelCause(context.Background())
	v := &visitor{ctx: ctx}
	v.Guest, v.err = p.Enter(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), giveWay)
	return v
}

// silenced reports whether the visitor had to give way.
func (v *visitor) silenced() bool { return errors.Is(context.Cause(v.ctx), ErrSilent) }

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
		p := New(4, Silence)
		other := comes(p, "192.0.2.2:1")
		var crowd []*visitor
		for port := range 3 {
			time.Sleep(time.Minute)
			crowd = append(crowd, comes(p, fmt.Sprint("192.0.2.1:", port+1)))
		}
		crowd[0].Moved()
		time.Sleep(Silence - 1)
		crowd[0].Moved()
		time.Sleep(time.Nanosecond)
		if v := comes(p, "192.0.2.3:1"); v.err != nil || other.silenced() || crowd[0].silenced() || !crowd[1].silenced() || crowd[2].silenced() {
			t.Errorf("one more: %v; who gave way: %v, %v, %v, %v", v.err, other.silenced(), crowd[0].silenced(), crowd[1].silenced(), crowd[2].silenced())
		}
		for _, v := range []*visitor{other, crowd[0], crowd[2]} {
			v.Moved()
		}
		full(t, comes(p, "192.0.2.4:1"), 4, false)
		other.Leave()
		if v := comes(p, "192.0.2.4:1"); v.err != nil {
			t.Errorf("in the place of one that left: %v", v.err)
		}
	})
}

// TestShare: one source has three quarters, whose own most silent one gives way to more of it.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(4, Silence)
		other := comes(p, "192.0.2.2:1")
		time.Sleep(time.Hour)
		for range 3 {
			comes(p, "192.0.2.1:1")
		}
		full(t, comes(p, "192.0.2.1:3"), 3, true)
		time.Sleep(Silence)
		if v := comes(p, "192.0.2.1:3"); v.err != nil || other.silenced() {
			t.Errorf("got %v, the other's gave way: %v", v.err, other.silenced())
		}
	})
}

// TestLeaving bounds those that have given way and do not end, and counts each once however often it leaves.
func TestLeaving(t *testing.T) {
	p := New(1, 0)
	last := comes(p, "192.0.2.1:1")
	var slow []*visitor
	for range maxLeaving {
		slow = append(slow, last)
		last = comes(p, "192.0.2.1:1")
	}
	full(t, comes(p, "192.0.2.1:1"), 1, true)
	last.Leave() // which has not given way
	comes(p, "192.0.2.1:1")
	if p.leaving != maxLeaving {
		t.Errorf("%d have given way and not left", p.leaving)
	}
	slow[0].Leave()
	if p.leaving != maxLeaving-1 {
		t.Errorf("%d have given way and not left, after one has", p.leaving)
	}
	slow[0].Leave()
	if v := comes(p, "192.0.2.1:1"); v.err != nil {
		t.Errorf("after one has ended: %v", v.err)
	}
	full(t, comes(p, "192.0.2.1:1"), 1, true)
}

// TestStay: who stays gives way to nobody, and leaves the share of its source to others.
func TestStay(t *testing.T) {
	p := New(4, 0)
	var all []*visitor
	for range 4 {
		all = append(all, comes(p, "192.0.2.1:1"))
		all[len(all)-1].Stay(true)
	}
	full(t, comes(p, "192.0.2.2:1"), 4, false)
	full(t, comes(p, "192.0.2.1:1"), 4, false)
	all[2].Stay(false)
	if v := comes(p, "192.0.2.2:1"); v.err != nil || all[0].silenced() || !all[2].silenced() {
		t.Errorf("one that stays no more did not give way: %v", v.err)
	}
}

// TestNoBound has any number of guests, and nobody in need of a place where a server has one connection.
func TestNoBound(t *testing.T) {
	p := New(0, 0)
	for range 1000 {
		if v := comes(p, "192.0.2.1:1"); v.err != nil {
			t.Fatal(v.err)
		}
	}
	(*Guest)(nil).Moved()
}

// TestEldest: of one source the guest gives way that has been silent longest, in whatever order they are looked at.
func TestEldest(t *testing.T) {
	now := time.Now()
	all := []*Guest{{moved: now}, {moved: now.Add(-time.Minute)}, {moved: now.Add(-time.Second)}}
	from := map[netip.Prefix]int{{}: 3}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		if got := mostSilent([]*Guest{all[order[0]], all[order[1]], all[order[2]]}, from); got != all[1] {
			t.Errorf("order %v: one gives way that moved %v ago", order, now.Sub(got.moved))
		}
	}
}

// TestTexts tells whoever is rejected whose connections there are.
func TestTexts(t *testing.T) {
	for same, want := range map[bool]string{true: "3 connections from your address already: try again later", false: "3 connections already: try again later"} {
		if got := (&FullError{3, same}).Error(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
