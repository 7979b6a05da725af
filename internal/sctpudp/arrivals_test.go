package sctpudp

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// wantAdmitted gives TSNs to arrivals, with ten bytes each.
func wantAdmitted(t *testing.T, a *arrivals, want bool, tsns ...uint32) {
	t.Helper()
	for _, tsn := range tsns {
		if got := a.admits(tsn, 10); got != want {
			t.Errorf("TSN %d: admitted %t, want %t", tsn, got, want)
		}
	}
}

// TestHoldBack: while much is held and something is missing, what is missing is taken, and what has come before is
// acknowledged again; nothing new is. With nothing missing, holding back would be for ever.
func TestHoldBack(t *testing.T) {
	first := uint32(1<<32 - 2) // it wraps
	a := newArrivals(first, 1000)
	a.setHold(true)
	wantAdmitted(t, a, true, first, 1<<32-1)
	a.setHold(false)
	wantAdmitted(t, a, true, 3, 5)
	a.setHold(true)
	wantAdmitted(t, a, false, 6, 7, first+maxDistance)
	wantAdmitted(t, a, true, 5, first, 2, 4, 0)
	wantAdmitted(t, a, false, 6)
	wantAdmitted(t, a, true, 1) // the last that was missing
	wantAdmitted(t, a, true, 6)
	if a.next != 7 || a.ahead != nil {
		t.Errorf("%d is next, %v are ahead", a.next, a.ahead)
	}
	wantAdmitted(t, a, true, 9)
	wantAdmitted(t, a, false, 10)
	a.setHold(false)
	wantAdmitted(t, a, true, 10)
}

// TestRoomInPion: pion gets nothing that it would drop, as a TSN counts as arrived with that: neither one that is too
// far from the first missing one, nor more than its window, but for what is missing.
func TestRoomInPion(t *testing.T) {
	a := newArrivals(0, 5)
	wantAdmitted(t, a, false, 0, 1)
	a = newArrivals(0, 25)
	wantAdmitted(t, a, false, maxDistance)
	wantAdmitted(t, a, true, 0, 2)
	wantAdmitted(t, a, false, 3)
	wantAdmitted(t, a, true, 1)
	wantAdmitted(t, a, false, 3)
	a.read(10)
	wantAdmitted(t, a, false, 3)
	a.read(10)
	wantAdmitted(t, a, true, maxDistance)
}

// TestClosedWindow: the SACKs of a packet say that there is no room while the peer is held back, wherever they stand.
func TestClosedWindow(t *testing.T) {
	sack := binary.BigEndian.AppendUint32(nil, 7)
	sack = append(binary.BigEndian.AppendUint32(sack, 5000+lag), 0, 0, 0, 0)
	d := chunk.Data{TSN: 1, Stream: 3, Number: 4, PPID: 16, Bytes: []byte("odd")}
	packet := func() []byte {
		return chunk.Header{}.Packet(d.Chunk(chunk.FlagsWhole), chunk.Chunk{Type: chunk.TypeSack, Value: sack})
	}
	window := func(b []byte) uint32 { return binary.BigEndian.Uint32(b[len(b)-8:]) }
	a := newArrivals(0, 1000)
	a.setHold(true)
	b := packet()
	if a.announce(b); window(b) != 5000 {
		t.Errorf("with nothing missing: a window of %d", window(b))
	}
	wantAdmitted(t, a, true, 1)
	before := bytes.Clone(b)
	if a.announce(b); window(b) != 0 {
		t.Errorf("a window of %d", window(b))
	}
	if n := len(b) - 8; !bytes.Equal(b[:n], before[:n]) {
		t.Errorf("other bytes have changed: % x, before % x", b[:n], before[:n])
	}
	a.announce(b[:len(b)-9]) // cut
	a.announce(chunk.Header{}.Packet(chunk.Chunk{Type: chunk.TypeSack, Value: sack[:7]}))
	a.setHold(false)
	b = packet()
	if a.announce(b); window(b) != 5000 {
		t.Errorf("with room again: a window of %d", window(b))
	}
}

// TestAnnounced: room that was announced is there, though pion has handed out messages that are not counted yet, up to
// a bound; and so is room that was not.
func TestAnnounced(t *testing.T) {
	a := newArrivals(0, 22) // of which lag makes a multiple of ten
	wantAdmitted(t, a, true, 0, 1)
	wantAdmitted(t, a, false, 2)
	sack := make([]byte, 12)
	binary.BigEndian.PutUint32(sack[4:], 10+lag)
	a.announceSack(&chunk.Chunk{Type: chunk.TypeSack, Value: sack})
	wantAdmitted(t, a, true, 2)
	wantAdmitted(t, a, false, 3)
	binary.BigEndian.PutUint32(sack[4:], 5*lag)
	a.announceSack(&chunk.Chunk{Type: chunk.TypeSack, Value: sack})
	for tsn := uint32(3); a.unread+10 <= 22+lag && !t.Failed(); tsn++ {
		wantAdmitted(t, a, true, tsn)
	}
	if a.unread != 22+lag {
		t.Errorf("%d bytes are unread", a.unread)
	}
	wantAdmitted(t, a, false, a.next)

	a = newArrivals(0, 20)
	wantAdmitted(t, a, true, 0)
	binary.BigEndian.PutUint32(sack[4:], lag)
	a.announceSack(&chunk.Chunk{Type: chunk.TypeSack, Value: sack})
	wantAdmitted(t, a, true, 1)
}

// TestKnown: what pion is asked for a SACK with is always a TSN that has come, or the one before the first.
func TestKnown(t *testing.T) {
	a := newArrivals(5, 100)
	for want := uint32(4); want < 8; want++ {
		c := a.known()
		if d, ok := c.Data(); !ok || d.TSN != want || c.Flags&flagImmediate == 0 {
			t.Errorf("TSN %d with flags %x, want %d", d.TSN, c.Flags, want)
		}
		wantAdmitted(t, a, true, want+1)
		a.announceSack(&chunk.Chunk{Type: chunk.TypeSack, Value: binary.BigEndian.AppendUint32(
			binary.BigEndian.AppendUint32(nil, want+1), lag)})
	}
}

// TestFills: what has come after others that were sent later is acknowledged at once, and nothing else because of that.
func TestFills(t *testing.T) {
	a := newArrivals(1<<32-1, 1000)
	wantAdmitted(t, a, true, 1<<32-1, 1, 4)
	for tsn, want := range map[uint32]bool{1<<32 - 1: false, 0: true, 1: false, 2: true, 3: true, 4: false, 5: false} {
		if got := a.fills(tsn); got != want {
			t.Errorf("%d fills a gap: %t", tsn, got)
		}
	}
	wantAdmitted(t, a, true, 0, 3, 2)
	if a.fills(3) || a.fills(5) {
		t.Errorf("there is no gap in %+v", a)
	}
}

// TestArrivals: a sender that sends again what is not taken gets everything through, in whatever order it arrives and
// however the consumer holds it back meanwhile, and with nothing missing it is not held back.
func TestArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint32().Draw(t, "first")
		const n = 200
		a := newArrivals(first, 10*n)
		taken := make(map[uint32]bool)
		left := make([]uint32, n)
		for i := range left {
			left[i] = uint32(i)
		}
		for len(left) > 0 {
			a.setHold(rapid.Bool().Draw(t, "hold"))
			i := 0 // what is missing comes at last
			if rapid.IntRange(0, 3).Draw(t, "in order") > 0 {
				i = rapid.IntRange(0, len(left)-1).Draw(t, "which")
			}
			ok := a.admits(first+left[i], 10)
			if !ok && (i == 0 && len(taken) == int(left[0]) || !a.hold) {
				t.Fatalf("%d is not taken, with nothing missing before", left[i])
			}
			if ok {
				taken[left[i]] = true
				left = append(left[:i], left[i+1:]...)
			}
		}
		if a.next != first+n || a.highest != first+n-1 || a.ahead != nil || a.unread != 10*n {
			t.Fatalf("%+v after %d", a, n)
		}
	})
}
