package memory

import (
	"bytes"
	"math"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// window allocates one in the tests' Protection Domain.
func window(t testing.TB, table *Table, first bool) *Window {
	t.Helper()
	w, err := table.AllocateWindow(pd, first)
	testrig.Must(t, err)
	return w
}

// byte is what a peer tries to place.
var data = layout.Plain([]byte{0xee})

// RDMA verbs 7: a window has an index of the RNIC's and a key of the consumer's, begins Invalid,
// is within the region, and only its own rights count; invalidated it goes back to the Protection Domain.
func TestWindow(t *testing.T) {
	table := NewTable()
	r, buf := register(t, table, Options{Access: LocalWrite, PD: pd, Base: base}) // no remote right
	w, d := window(t, table, false), local(table)
	if w.STag()&keyMask != 0 || w.Valid() || w.region != nil {
		t.Errorf("STag %#x, valid: %t", w.STag(), w.Valid())
	}
	if f := d.Place(w.STag(), 0, data); f != Invalidated {
		t.Errorf("before it is bound: %v", f)
	}
	before := w.STag()
	if f := d.Bind(w, Binding{Region: r, Offset: 8, Length: 4, Base: 100, Access: RemoteWrite, Key: 0xab}); f != None {
		t.Fatal(f)
	}
	if w.STag() != before|0xab || !w.Valid() || w.region != r || w.Base() != 100 || w.Size() != 4 ||
		w.Access() != RemoteWrite {
		t.Errorf("STag %#x, %d bytes at %#x", w.STag(), w.Size(), w.Base())
	}
	for to, want := range map[uint64]Fault{99: Bounds, 100: None, 103: None, 104: Bounds,
		base: Bounds, math.MaxUint64: Wrap} {
		if f := d.Place(w.STag(), to, data); f != want {
			t.Errorf("at %d: %v, want %v", to, f, want)
		}
	}
	if f := d.CheckWrite(w.STag(), 100, 5); f != Bounds {
		t.Errorf("one byte too many: %v", f)
	}
	if f := d.Load(into(make([]byte, 1)), 1, w.STag(), 100); f != NoRemoteRead {
		t.Errorf("a right it does not give: %v", f)
	}
	if f := d.Place(before, 100, data); f != InvalidSTag {
		t.Errorf("with another key: %v", f)
	}
	if f := d.Place(r.STag(), base, data); f != NoRemoteWrite {
		t.Errorf("past the window: %v", f)
	}
	want := numbered(64)
	want[16+8], want[16+11] = 0xee, 0xee
	if !bytes.Equal(buf, want) {
		t.Errorf("% x", buf)
	}
	if f := d.LocalInvalidate(w); f != None || w.Valid() || w.region != nil {
		t.Error(f)
	}
	if f := d.Place(w.STag(), 100, data); f != Invalidated {
		t.Error(f)
	}
	if f := d.LocalInvalidate(w); f != None { // "Valid or already Invalid"
		t.Error(f)
	}
}

// RDMA verbs 7: what a window cannot be bound to, and in which state. It is as it was then.
func TestBindRefused(t *testing.T) {
	table := NewTable()
	writable, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	readable, _ := register(t, table, Options{PD: pd})
	other, _ := register(t, table, Options{Access: LocalWrite, PD: pd + 1})
	void, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	gone, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	local(table).LocalInvalidate(void)
	table.Revoke(gone)
	for _, tt := range []struct {
		name string
		d    Domain
		b    Binding
		want Fault
	}{
		{"stream of another Protection Domain", Domain{table, pd + 1, stream, 0},
			Binding{Region: other, Length: 1, Access: RemoteRead}, OtherDomain},
		{"region of another Protection Domain", local(table),
			Binding{Region: other, Length: 1, Access: RemoteRead}, OtherDomain},
		{"window of another table", local(NewTable()),
			Binding{Region: writable, Length: 1, Access: RemoteRead}, OtherDomain},
		{"RemoteWrite without LocalWrite", local(table),
			Binding{Region: readable, Length: 1, Access: RemoteWrite}, NoLocalWrite},
		{"RemoteAtomic without LocalWrite", local(table),
			Binding{Region: readable, Length: 8, Access: RemoteAtomic}, NoLocalWrite},
		{"RemoteRead needs none", local(table), Binding{Region: readable, Length: 32, Access: RemoteRead}, None},
		{"one byte too far", local(table), Binding{Region: writable, Offset: 31, Length: 2,
			Access: RemoteRead}, Bounds},
		{"before the region", local(table), Binding{Region: writable, Offset: -1, Length: 1,
			Access: RemoteRead}, Bounds},
		{"offsets wrap", local(table), Binding{Region: writable, Length: 2, Base: math.MaxUint64,
			Access: RemoteRead}, Wrap},
		{"invalidated region", local(table), Binding{Region: void, Length: 1, Access: RemoteRead}, Invalidated},
		{"deregistered region", local(table), Binding{Region: gone, Length: 1, Access: RemoteRead}, InvalidSTag},
	} {
		w := window(t, table, false)
		if f := tt.d.Bind(w, tt.b); f != tt.want || w.Valid() != (f == None) {
			t.Errorf("%s: %v, want %v; valid: %t", tt.name, f, tt.want, w.Valid())
		}
	}
	w := window(t, table, false)
	b := Binding{Region: writable, Length: 1, Access: RemoteRead}
	for _, want := range []Fault{None, StillValid} {
		if f := local(table).Bind(w, b); f != want {
			t.Errorf("%v, want %v", f, want)
		}
	}
	table.Free(w)
	if f := local(table).Bind(w, b); f != InvalidSTag {
		t.Error(f)
	}
}

// RDMA verbs 7: a window that is bound belongs to the stream on which that was done, whose peer may
// invalidate it, and no other; so may its own consumer.
func TestWindowOfStream(t *testing.T) {
	table := NewTable()
	table.AddStream(pd)
	table.AddStream(pd)
	r, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	w, ours, other := window(t, table, false), local(table), Domain{table, pd, stream + 1, 0}
	bind := func() {
		t.Helper()
		if f := ours.Bind(w, Binding{Region: r, Length: 8, Access: RemoteWrite, Key: 3}); f != None {
			t.Fatal(f)
		}
	}
	bind()
	for name, got := range map[string]Fault{
		"Write": other.Place(w.STag(), 0, data), "Send with Invalidate": other.Invalidate(w.STag()),
		"local invalidation": other.LocalInvalidate(w),
	} {
		if got != OtherStream || !w.Valid() {
			t.Errorf("%s of another stream: %v", name, got)
		}
	}
	if f := ours.Invalidate(w.STag()); f != None || w.Valid() {
		t.Error(f)
	}
	// RFC 5040, section 7.2: "The Invalidate STag MUST be valid."
	if f := ours.Invalidate(w.STag()); f != Invalidated {
		t.Error(f)
	}
	if f := other.LocalInvalidate(w); f != None { // it is the domain's now
		t.Error(f)
	}
	if f := (Domain{table, pd + 1, stream, 0}).LocalInvalidate(w); f != OtherDomain {
		t.Error(f)
	}
	bind()
	table.EndStream(stream + 1)
	if !w.Valid() {
		t.Error("it went with another stream")
	}
	table.EndStream(stream)
	if w.Valid() || w.region != nil || len(table.windows) != 0 || r.windows != 0 {
		t.Error("its stream has ended")
	}
	if f := other.Bind(w, Binding{Region: r, Length: 8, Access: RemoteWrite}); f != None {
		t.Error(f)
	}
	table.EndStream(stream)
	w.endOf(stream) // which was about to end it when it was bound to another
	if !w.Valid() {
		t.Error("it went with an earlier stream")
	}
}

// RDMA verbs 7: a region with windows is neither invalidated nor deregistered. To free a window ignores
// its state.
func TestRegionWithWindows(t *testing.T) {
	table := NewTable()
	table.AddStream(pd)
	r, _ := register(t, table, Options{Access: LocalWrite | RemoteRead, PD: pd, Stream: stream})
	one, two, d := window(t, table, false), window(t, table, true), local(table)
	for _, w := range []*Window{one, two} {
		if f := d.Bind(w, Binding{Region: r, Length: 8, Access: RemoteWrite}); f != None {
			t.Fatal(f)
		}
	}
	refused := func() {
		t.Helper()
		for name, f := range map[string]Fault{"locally": d.LocalInvalidate(r), "by the peer": d.Invalidate(r.STag()),
			"for good": table.Revoke(r)} {
			if f != HasWindows || !r.Valid() {
				t.Errorf("%s: %v", name, f)
			}
		}
	}
	refused()
	d.LocalInvalidate(one)
	refused()
	if !table.Free(two) || table.Free(two) {
		t.Error("not freed once")
	}
	if f := d.Place(two.STag(), 0, data); f != InvalidSTag {
		t.Error(f)
	}
	if f := d.LocalInvalidate(two); f != FirstType {
		t.Error(f)
	}
	if f := d.Invalidate(r.STag()); f != None {
		t.Error(f)
	}
	if f := table.Revoke(r); f != None {
		t.Error(f)
	}
	if !table.Free(one) || table.tags.Len() != 0 {
		t.Error("tags are left")
	}
	if f := d.LocalInvalidate(one); f != InvalidSTag {
		t.Error(f)
	}
}

// A window of the first type is open to all streams of its Protection Domain, is bound again as it is,
// ends with a binding of nothing, and not by an invalidation.
func TestWindowOfFirstType(t *testing.T) {
	table := NewTable()
	table.AddStream(pd)
	a, _ := register(t, table, Options{Access: LocalWrite, PD: pd})
	b, buf := register(t, table, Options{Access: LocalWrite, PD: pd})
	w, d, other := window(t, table, true), local(table), Domain{table, pd, stream + 1, 0}
	for key, r := range []*Region{a, b} {
		old := w.STag()
		if f := d.Bind(w, Binding{Region: r, Length: 8, Access: RemoteWrite, Key: uint8(key) + 1}); f != None {
			t.Fatal(f)
		}
		if f := other.Place(old, 0, data); f != InvalidSTag {
			t.Errorf("by the STag before: %v", f)
		}
	}
	if a.windows != 0 || b.windows != 1 {
		t.Error(a.windows, b.windows)
	}
	if f := other.Place(w.STag(), 1, data); f != None || buf[17] != 0xee {
		t.Error(f)
	}
	if f := (Domain{table, pd + 1, stream, 0}).Place(w.STag(), 1, data); f != OtherDomain {
		t.Error(f)
	}
	if f := d.Invalidate(w.STag()); f != NotOffered {
		t.Error(f)
	}
	if f := d.LocalInvalidate(w); f != FirstType {
		t.Error(f)
	}
	if f := d.Bind(w, Binding{Region: b, Length: 33, Access: RemoteWrite}); f != Bounds || w.region != b {
		t.Errorf("what fails changes nothing: %v", f)
	}
	if f := d.Bind(w, Binding{Key: 9}); f != None || w.Valid() || w.STag()&keyMask != 9 || b.windows != 0 {
		t.Error(f)
	}
	if f := other.Place(w.STag(), 1, data); f != Invalidated {
		t.Error(f)
	}
}

// Once the binding of a window has ended, whoever ended it, nothing is written or read any
// more: the race detector watches the buffer.
//
// Proves Z13, Z14.
func TestUnbindRace(t *testing.T) {
	for name, end := range map[string]func(*Table, *Window){
		"invalidated": func(table *Table, w *Window) { local(table).LocalInvalidate(w) },
		"by the peer": func(table *Table, w *Window) { local(table).Invalidate(w.STag()) },
		"freed":       func(table *Table, w *Window) { table.Free(w) },
		"its stream":  func(table *Table, _ *Window) { table.EndStream(stream) },
	} {
		table := NewTable()
		r, buf := register(t, table, Options{Access: LocalWrite, PD: pd})
		w, d := window(t, table, false), local(table)
		if f := d.Bind(w, Binding{Region: r, Offset: 8, Length: 16, Access: RemoteWrite | RemoteRead}); f != None {
			t.Fatal(f)
		}
		var wg, began sync.WaitGroup
		for range 3 {
			began.Add(1)
			wg.Go(func() {
				began.Done()
				b := numbered(16)
				for f := None; f == None; f = d.Place(w.STag(), 0, layout.Plain(b)) {
					d.Load(into(b), len(b), w.STag(), 0)
				}
			})
		}
		began.Wait()
		end(table, w)
		if at := changed(buf, &wg); at >= 0 {
			t.Errorf("%s: byte %d has changed", name, at)
		}
	}
}
