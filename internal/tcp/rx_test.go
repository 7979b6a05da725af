package tcp

import (
	"bytes"
	"testing"
)

// TestRoom looks for room in a receive buffer. What is unread goes to the front only where there is too little room
// after it: for what is needed at once, and else in half of the buffer.
func TestRoom(t *testing.T) {
	const whole = BufferSize
	for _, c := range []struct {
		what       string
		r, w, need int
		moves      bool
	}{
		{"little at the front", 10, 20, 0, false},
		{"from the middle on", whole / 2, whole - 7, 0, false},
		{"after the middle", whole/2 + 1, whole - 7, 0, true},
		{"no room for what is needed", 100, 200, whole - 99, true},
		{"just room for what is needed", 100, 200, whole - 100, false},
		{"much, and nothing after it", 10, whole, 0, true},
	} {
		var x rx
		x.room()
		x.r, x.w, x.need = c.r, c.w, c.need
		for i := range c.w - c.r {
			x.big[c.r+i] = byte(i)
		}
		unread := bytes.Clone(x.bytes())
		room := x.room()
		if moved := x.r == 0; moved != c.moves {
			t.Errorf("%s: it moves: %t", c.what, moved)
		}
		if !bytes.Equal(x.bytes(), unread) || len(room) != whole-x.w || len(room) == 0 {
			t.Errorf("%s: %d bytes are unread, with room for %d", c.what, len(x.bytes()), len(room))
		}
		x.release()
	}
}

// TestLandsInLittle reads much without a socket, and then little: the memory for much is given back.
func TestLandsInLittle(t *testing.T) {
	x := rx{small: make([]byte, smallSize)}
	for _, n := range []int{smallSize, 5} {
		x.add(x.landing(), n)
		x.consume(n, 0)
	}
	if x.more == nil {
		t.Fatal("much was read to little")
	}
	if room := len(x.landing()); room != smallSize || x.more != nil {
		t.Errorf("it waits with %d bytes, and the others", room)
	}
}
