package driver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// An arrow is a transition.
type arrow struct{ from, to State }

// drawn returns all arrows of the table.
func drawn() map[arrow]bool {
	all := make(map[arrow]bool)
	for from := range follows {
		for _, to := range follows[from] {
			all[arrow{State(from), to}] = true
		}
	}
	return all
}

// TestEnterKeepsToTheTable: no transition happens but those that are drawn. So each test of this package holds that of
// its own connections.
func TestEnterKeepsToTheTable(t *testing.T) {
	legal := drawn()
	for from := range State(len(follows)) {
		for to := range State(len(follows)) {
			c := &Conn{state: from}
			enters := func() (ok bool) {
				defer func() { ok = recover() == nil }()
				c.enter(to)
				return
			}()
			if want := legal[arrow{from, to}]; enters != want || (c.state == to) != (want || from == to) {
				t.Errorf("from %v to %v: %t, and then in %v", from, to, enters, c.state)
			}
		}
	}
}

// A walk notes the states that a connection goes through. Its QP and its lower layer wait for the test, so that each of
// the states lasts until the test has seen it.
type walk struct {
	*end
	last State
	seen map[arrow]bool
}

// at waits for a state, and notes the way there.
func (w *walk) at(s State) {
	w.Helper()
	w.await(fmt.Sprint("state ", s), func() bool { return w.Status().Phase == s })
	w.seen[arrow{w.last, s}] = true
	w.last = s
}

// TestTransitions walks through the states by what leads to them, and every transition that is drawn happens.
func TestTransitions(t *testing.T) {
	seen := make(map[arrow]bool)
	for _, foreign := range []bool{false, true} {
		for _, closing := range []bool{false, true} {
			walksToItsEnd(t, seen, foreign, closing)
		}
	}
	if want := drawn(); !maps.Equal(seen, want) {
		t.Errorf("seen %v, drawn %v", slices.Collect(maps.Keys(seen)), slices.Collect(maps.Keys(want)))
	}
}

// walksToItsEnd aborts a connection, over a lower layer that is closed by code of the user's or is not, and that is
// being closed before or is not.
func walksToItsEnd(t *testing.T, seen map[arrow]bool, foreign, closing bool) {
	held, told, reset := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := newSetup(mpa.RoleInitiator)
	s.called = func(what string) {
		if what == "Completed" {
			close(held)
			<-told // what comes meanwhile is handed up later
		}
	}
	lower := newSegments()
	w := &walk{seen: seen}
	if foreign {
		lower.each = func(call string) {
			if call == "Reset" {
				<-reset
			}
		}
		w.end = s.over(t, lower)
	} else {
		a, _ := sockets(t)
		w.end = s.on(t, a)
	}
	go func() { _ = w.PostSend(&engine.SendWork{Op: engine.OpWrite}, 0, true) }()
	<-held
	w.at(Open)
	delete(seen, arrow{Open, Open})
	if closing {
		w.BeginClose()
		w.at(Closing)
	}
	w.Abort(engine.ErrAborted)
	if foreign {
		w.at(Leaving)
		if err := w.Modify(engine.Idle); !errors.Is(err, engine.ErrBadState) {
			t.Errorf("to Idle, while it is closed: %v", err)
		}
		close(reset)
	}
	w.at(Closed)
	if w.ended() != nil {
		t.Error("the end is told of before the completion in front of it")
	}
	close(told)
	w.awaitEnd()
	w.at(Over)
}
