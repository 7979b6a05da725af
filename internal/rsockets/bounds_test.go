package rsockets

import (
	"errors"
	"strings"
	"testing"
)

// TestNoPlace has a peer that offers no bytes, and a piece of none: no credit is taken.
func TestNoPlace(t *testing.T) {
	none := hello(2, 16, 0)
	if s := newSender(&none); s.Ready() || s.Next(10) != (Entry{}) || s.seq != 0 {
		t.Error("there is a place of no bytes")
	}
	some := hello(2, 16, 100)
	if s := newSender(&some); s.Next(0) != (Entry{}) || s.seq != 0 || !s.Ready() {
		t.Error("a piece of no bytes has taken a credit")
	}
}

// TestBeyondThePart has a peer write beyond what it was offered, after a part of that has come: the error says how much
// it was offered still.
func TestBeyondThePart(t *testing.T) {
	e := newEnd(hello(2, 16, 200), hello(2, 16, 200), 16384)
	e.must(t, OpData, 8000)
	if err := e.say(OpData, 193); err == nil || !strings.Contains(err.Error(),
		"a piece of length 193, where the peer was offered 192") {
		t.Errorf("got %v", err)
	}
	e.must(t, OpData, 192)
}

// TestTablesEnd has a peer's table, with that of its maps, end just before the last address that there is, or with it.
func TestTablesEnd(t *testing.T) {
	for _, beyond := range []bool{false, true} {
		h := hello(2, 16, 200)
		h.Maps = 3
		h.Table.TO = 1<<64 - 1 - (2*EntryLen + 3*MapLen)
		if beyond {
			h.Table.TO++
		}
		b, _ := h.AppendBinary(nil)
		if _, err := ParseHello(b); (err != nil) != beyond {
			t.Errorf("beyond: %t: %v", beyond, err)
		}
	}
}

// TestErrorText has an error end with its cause, if it has one.
func TestErrorText(t *testing.T) {
	_, err := ParseHello(nil)
	if !errors.Is(err, ErrVersion) || !strings.HasSuffix(err.Error(), ": "+ErrVersion.Error()) {
		t.Errorf("with a cause: %v", err)
	}
	if got := wrong("field", "a reason").Error(); got != "rsockets: field: a reason" {
		t.Errorf("without: %s", got)
	}
}
