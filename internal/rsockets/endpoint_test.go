package rsockets

import (
	"bytes"
	"testing"
)

// table is the memory of an end's own table.
type table []byte

func (m table) Update(f func([]byte)) error { f(m); return nil }

// An end is an Endpoint with its memory.
type end struct {
	*Endpoint
	table table
	ring  []byte
	big   bool
}

const (
	tableAt = 0x1000
	ringAt  = 0x8000
)

func hello(entries, credits, ring int) Hello {
	return Hello{
		Credits: uint16(credits), Entries: uint32(entries), Table: Place{tableAt, 1},
		Ring: Entry{Place{ringAt, 2}, uint32(ring / 2)},
	}
}

func newEnd(ours, peer Hello, ring int) *end {
	return &end{
		Endpoint: NewEndpoint(ours, peer, ring, 1), table: make(table, int(ours.Entries)*EntryLen+ours.Maps*MapLen),
		ring: make([]byte, ring),
		big:  ours.Big,
	}
}

// say has a word arrive.
func (e *end) say(op Op, value uint32) error {
	return e.Deliver(NewWord(op, value).Append(nil, e.peer.Big), e.table)
}

func (e *end) must(t *testing.T, op Op, value uint32) {
	t.Helper()
	if err := e.say(op, value); err != nil {
		t.Fatal(err)
	}
}

// put has the peer write an entry.
func (e *end) put(slot int, entry Entry) { copy(e.table[slot*EntryLen:], entry.Append(nil, e.big)) }

func (e *end) wantNext(t *testing.T, most int, to uint64, n uint32) {
	t.Helper()
	if got := e.Next(most); got.Length != n || n > 0 && got.TO != to {
		t.Fatalf("next: %d bytes at %#x, wanted %d at %#x", got.Length, got.TO, n, to)
	}
}

func (e *end) wantDue(t *testing.T, want Notice) {
	t.Helper()
	if got, due := e.Due(); !due || got != want {
		t.Fatalf("due: %v, %v %+v, wanted %v %+v", due, got.Word, got, want.Word, want)
	}
}

func (e *end) wantQuiet(t *testing.T) {
	t.Helper()
	if got, due := e.Due(); due {
		t.Fatalf("due: %v %+v", got.Word, got)
	}
}

// TestSend sends into the halves of a peer of rdma-core's kind.
func TestSend(t *testing.T) {
	e := newEnd(hello(2, 16, 256), hello(2, 384, 256), 256)
	e.wantNext(t, 100, ringAt, 100)
	e.wantNext(t, 0, 0, 0)
	e.wantNext(t, 100, ringAt+100, 28) // a piece never crosses an entry
	e.wantNext(t, 100, 0, 0)
	if e.Ready() {
		t.Error("ready without a place")
	}
	e.must(t, OpCredit, 384)
	e.wantNext(t, 100, 0, 0) // credits are no place
	e.put(1, Entry{Place{ringAt + 128, 2}, 128})
	e.must(t, OpCredit, 384)
	e.put(0, Entry{Place{ringAt, 2}, 128})
	e.must(t, OpCredit, 386)
	e.wantNext(t, 1000, ringAt+128, 128)
	e.wantNext(t, 1000, ringAt, 128)
	if !bytes.Equal(e.table, make([]byte, 32)) {
		t.Errorf("entries that are left: %x", e.table)
	}
}

// TestSpare leaves the last credits of the peer, by which words without a credit of their own find a receive.
func TestSpare(t *testing.T) {
	for credits, used := range map[int]int{384: 376, 32: 24, 16: 12, 4: 3, 3: 3, 0: 0} {
		e := newEnd(hello(2, 16, 256), hello(2, credits, 4096), 256)
		n := 0
		for e.Next(1).Length > 0 {
			n++
		}
		if n != used {
			t.Errorf("of %d credits %d were used, wanted %d", credits, n, used)
		}
		e.must(t, OpCredit, uint32(credits+1)) // the limit is absolute
		e.wantNext(t, 1, ringAt+uint64(used), 1)
	}
}

// TestWraps has the numbers of words pass 2^16.
func TestWraps(t *testing.T) {
	e := newEnd(hello(2, 16, 256), hello(2, 16, 1<<18), 256)
	for i := range 1 << 17 {
		e.must(t, OpCredit, uint32(i+16))
		e.wantNext(t, 1, ringAt+uint64(i), 1)
	}
}

// TestReceive offers halves, and returns credits.
func TestReceive(t *testing.T) {
	e := newEnd(hello(2, 8, 256), hello(2, 384, 256), 256)
	e.wantDue(t, Notice{Word: NewWord(OpCredit, 8), Offset: 128, Length: 128, Slot: 1})
	e.wantQuiet(t)
	for range 4 {
		e.must(t, OpData, 25)
	}
	if at, n := e.Readable(); at != 0 || n != 100 {
		t.Errorf("%d bytes at %d", n, at)
	}
	e.Consume(99)
	e.wantQuiet(t) // three pieces are done with, and the fourth is not
	e.Consume(1)
	e.wantDue(t, Notice{Word: NewWord(OpCredit, 12)})
	e.must(t, OpData, 28)
	e.must(t, OpData, 128)
	if at, n := e.Readable(); at != 100 || n != 156 {
		t.Errorf("%d bytes at %d", n, at)
	}
	e.Consume(28)
	e.wantDue(t, Notice{Word: NewWord(OpCredit, 13), Offset: 0, Length: 128, Slot: 0})
	e.must(t, OpData, 1)
	if at, n := e.Readable(); at != 128 || n != 128 {
		t.Errorf("a stretch ends with the ring: %d bytes at %d", n, at)
	}
	e.Consume(128)
	e.wantDue(t, Notice{Word: NewWord(OpCredit, 14), Offset: 128, Length: 128, Slot: 1})
	if at, n := e.Readable(); at != 0 || n != 1 {
		t.Errorf("%d bytes at %d", n, at)
	}
}

// TestParts offers smaller parts to a peer with a larger table.
func TestParts(t *testing.T) {
	for entries, want := range map[uint32][]int{1: nil, 2: {128}, 3: {128}, 4: {64, 64}, 7: {64, 64},
		8: {32, 32, 32, 32}, 1 << 31: {32, 32, 32, 32}} {
		e := newEnd(hello(2, 8, 256), hello(int(entries), 384, 256), 256)
		at, slot := 128, 1
		for _, n := range want {
			e.wantDue(t, Notice{Word: NewWord(OpCredit, 8), Offset: at, Length: n, Slot: slot})
			at, slot = at+n, slot+1
		}
		e.wantQuiet(t)
	}
}

// TestLeastPart offers no parts that are smaller than they are to be, but halves.
func TestLeastPart(t *testing.T) {
	for least, want := range map[int]int{1: 32, 32: 32, 33: 64, 64: 64, 65: 128, 1 << 20: 128} {
		e := NewEndpoint(hello(2, 8, 256), hello(8, 384, 256), 256, least)
		if got, due := e.Due(); !due || got.Offset != 128 || got.Length != want {
			t.Errorf("of %d bytes at least: %d at %d, wanted %d at 128", least, got.Length, got.Offset, want)
		}
	}
}

// TestOneEntry waits with its offer until the entry of a peer that has one is used up.
func TestOneEntry(t *testing.T) {
	e := newEnd(hello(2, 8, 256), hello(1, 384, 256), 256)
	e.wantQuiet(t)
	e.must(t, OpData, 127)
	e.wantQuiet(t)
	e.must(t, OpData, 1)
	e.wantDue(t, Notice{Word: NewWord(OpCredit, 8), Offset: 128, Length: 128})
}

// TestBadWords ends the connection of a peer that does what rdma-core never does.
func TestBadWords(t *testing.T) {
	fresh := func() *end { return newEnd(hello(2, 8, 256), hello(2, 384, 256), 256) }
	for _, c := range []struct {
		name, field string
		do          func(e *end) error
	}{
		{"reserved 1", "word", func(e *end) error { return e.say(1, 1) }},
		{"reserved 2", "word", func(e *end) error { return e.say(2, 1) }},
		{"reserved 3", "word", func(e *end) error { return e.say(3, 1) }},
		{"reserved 5", "word", func(e *end) error { return e.say(5, 1) }},
		{"control 3", "word", func(e *end) error { return e.say(OpControl, 3) }},
		{"length", "word", func(e *end) error { return e.Deliver(make([]byte, 3), e.table) }},
		{"empty piece", "data", func(e *end) error { return e.say(OpData, 0) }},
		{"beyond the half", "data", func(e *end) error { return e.say(OpData, 129) }},
		{"across halves", "data", func(e *end) error { e.Due(); return e.say(OpData, 129) }},
		{"beyond the ring", "data", func(e *end) error { _ = e.say(OpData, 128); return e.say(OpData, 1) }},
		{"after its end", "data", func(e *end) error {
			_ = e.say(OpControl,
				uint32(Shutdown))
			return e.say(OpData, 1)
		}},
		{"map without a table", "map", func(e *end) error { return e.say(OpMap, 0) }},
		{"no credit", "credit", func(e *end) (err error) {
			for range 9 {
				err = e.say(OpData, 1)
			}
			return err
		}},
		{"entry that does not end", "table", func(e *end) error {
			e.put(1,
				Entry{Place{^uint64(0), 1}, 2})
			return e.say(OpCredit, 1)
		}},
		{"entries under way", "table", func(e *end) error {
			e.put(1, Entry{Place{0, 1}, 2})
			e.put(0, Entry{Place{0, 1}, 2})
			return e.say(OpCredit, 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) { wantError(t, c.do(fresh()), c.field) })
	}
}

func withMaps(entries, credits int, counts bool) Hello {
	h := hello(entries, credits, 256)
	h.Maps, h.CountsMaps = 2, counts
	return h
}

// TestMaps takes what the peer has mapped.
func TestMaps(t *testing.T) {
	e := newEnd(withMaps(2, 8, true), hello(2, 384, 256), 256)
	e.Due()
	m := Map{Offset: 100, Entry: Entry{Place{0x5000, 7}, 50}}
	copy(e.table[2*EntryLen+MapLen:], m.Append(nil, false))
	e.must(t, OpMap, 1)
	if at, found := e.Find(110, 100); !found || at != (Entry{Place{0x500A, 7}, 40}) {
		t.Errorf("%+v %v", at, found)
	}
	if _, found := e.Find(150, 1); found {
		t.Error("found beyond its end")
	}
	for range 3 {
		e.must(t, OpMap, 0)
	}
	e.wantDue(t, Notice{Word: NewWord(OpCredit, 12)}) // a map returns its credit
	copy(e.table[2*EntryLen:], Map{Offset: ^uint64(0), Entry: m.Entry}.Append(nil, false))
	wantError(t, e.say(OpMap, 0), "map")
	for range 6 {
		e.must(t, OpMap, 1)
	}
	e.must(t, OpData, 1)
	wantError(t, e.say(OpMap, 1), "credit")
}

// TestNewestMap takes the map that has come last for what several of them have, whatever their entries: older ones may
// be closed, which is not told.
func TestNewestMap(t *testing.T) {
	ours := withMaps(2, 8, true)
	ours.Maps = 4
	e := newEnd(ours, hello(2, 384, 256), 256)
	comes := func(i int, offset uint64, length uint32, stag uint32) {
		t.Helper()
		copy(e.table[2*EntryLen+i*MapLen:], Map{Offset: offset,
			Entry: Entry{Place{0x5000, stag}, length}}.Append(nil, false))
		e.must(t, OpMap, uint32(i))
	}
	want := func(offset uint64, stag, length uint32) {
		t.Helper()
		if at, _ := e.Find(offset, 1000); at.STag != stag || at.Length != length {
			t.Errorf("offset %d: %d bytes of STag %d, wanted %d of %d", offset, at.Length, at.STag, length, stag)
		}
	}
	comes(0, 0, 100, 1)
	comes(1, 1000, 100, 2)
	comes(0, 1000, 100, 3) // at the offset of another
	want(1000, 3, 100)
	want(0, 0, 0)
	comes(2, 0, 2000, 4) // around that
	want(1000, 4, 1000)
	comes(1, 500, 10, 5) // within that
	want(400, 4, 100)    // and not farther: there is a newer one
	want(505, 5, 5)
	want(510, 4, 1000)
	comes(3, 0, 0, 6) // of nothing
	want(400, 4, 100)
}

// TestTellMaps uses up only so many credits of a peer that does not return them.
func TestTellMaps(t *testing.T) {
	for counts, want := range map[bool]int{false: 4, true: 12} {
		e := newEnd(hello(2, 8, 256), withMaps(2, 16, counts), 256)
		n := 0
		for e.TellMap() {
			n++
		}
		if n != want {
			t.Errorf("counts %v: %d maps, wanted %d", counts, n, want)
		}
	}
}

// TestEnding has both directions end, in either order.
func TestEnding(t *testing.T) {
	fresh := func() *end { return newEnd(hello(2, 8, 256), hello(2, 384, 256), 256) }
	want := func(w Word, send bool, value Control, sent bool) {
		t.Helper()
		if send != sent || sent && w != NewWord(OpControl, uint32(value)) {
			t.Errorf("%v %v, wanted %d %v", w, send, value, sent)
		}
	}
	e := fresh()
	w, send := e.End()
	want(w, send, Shutdown, true)
	w, send = e.End()
	want(w, send, 0, false)
	e.must(t, OpControl, uint32(KeepAlive))
	e.must(t, OpData, 5)
	e.must(t, OpControl, uint32(Shutdown))
	if !e.Ended() || !e.PeerEnded() || e.Disconnected() {
		t.Errorf("%+v", e.Ending)
	}
	w, send = e.Disconnect() // rdma-core's end is disconnected by the second word 2, and gets nothing more
	want(w, send, 0, false)

	e = newEnd(hello(2, 8, 256), withMaps(2, 384, true), 256) // one of ours says Disconnect all the same
	e.End()
	e.must(t, OpControl, uint32(Shutdown))
	w, send = e.Disconnect()
	want(w, send, Disconnect, true)

	e = fresh() // the peer says nothing
	w, send = e.End()
	want(w, send, Shutdown, true)
	w, send = e.Disconnect()
	want(w, send, Disconnect, true)
	w, send = e.Disconnect()
	want(w, send, 0, false)

	e = fresh() // the peer is the first
	e.must(t, OpControl, uint32(Shutdown))
	w, send = e.End()
	want(w, send, Disconnect, true)

	e = fresh() // the peer is gone
	e.must(t, OpData, 5)
	e.must(t, OpControl, uint32(Disconnect))
	if _, n := e.Readable(); n != 5 || !e.Disconnected() || !e.PeerEnded() || e.Ended() {
		t.Errorf("%d bytes, %+v", n, e.Ending)
	}
	w, send = e.End()
	want(w, send, 0, false)
	if !e.Ended() {
		t.Error("not ended")
	}
	w, send = e.Disconnect() // rdma-core's end may have no receives any more
	want(w, send, 0, false)

	e = newEnd(hello(2, 8, 256), withMaps(2, 384, true), 256) // one of ours waits for our word
	e.must(t, OpControl, uint32(Disconnect))
	w, send = e.Disconnect()
	want(w, send, Disconnect, true)
}
