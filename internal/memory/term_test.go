package memory

import (
	"bytes"
	"testing"
)

// A request that names a region means the registration that was current when it was posted, or was posted last before
// it, and no later one, with the same STag either; and of these the one that it meets first.
func TestTerm(t *testing.T) {
	const first, second = 'a', 'b'
	for _, tt := range []struct {
		name   string
		posted int      // after so many of: first announced, first done, second announced, second done
		want   [3]Fault // without a registration, with the first, and with the second
	}{
		{"before any", 0, [3]Fault{Invalidated, Invalidated, Invalidated}},
		{"after the request for the first", 1, [3]Fault{Invalidated, None, Invalidated}},
		{"with the first", 2, [3]Fault{Invalidated, None, Invalidated}},
		{"after the request for the second", 3, [3]Fault{Invalidated, None, None}},
		{"with the second", 4, [3]Fault{Invalidated, Invalidated, None}},
	} {
		table := NewTable()
		r, d := allocate(t, table, Most{1, 8}), local(table)
		regs := [2]Registration{{Memory: [][]byte{bytes.Repeat([]byte{first}, 8)}},
			{Memory: [][]byte{bytes.Repeat([]byte{second}, 8)}}}
		var got [3]Fault
		var at Term
		judge := func(i int) {
			once := at // each by itself: what one meets, another may not
			got[i] = d.LocalCheck(r, &once, 0, 8, false)
			var p taken
			if f := d.LocalLoad(&p, r, &once, 0, 8); f != got[i] || (f == None) != (len(p) == 8) {
				t.Errorf("%s: %v, then %v", tt.name, got[i], f)
			}
		}
		steps := []func(){
			func() { r.Announce(&regs[0]) }, func() { d.FastRegister(r, &regs[0]) },
			func() { r.Announce(&regs[1]) }, func() { d.LocalInvalidate(r); d.FastRegister(r, &regs[1]) },
		}
		for i := range len(steps) + 1 {
			if i == tt.posted {
				at = r.Term()
			}
			if i < len(steps) && i < tt.posted {
				steps[i]()
			}
		}
		if tt.posted < 2 {
			judge(0)
			for _, s := range steps[tt.posted:2] {
				s()
			}
		} else {
			got[0] = Invalidated
		}
		if tt.posted < 4 {
			judge(1)
			for _, s := range steps[max(tt.posted, 2):] {
				s()
			}
		} else {
			got[1] = Invalidated
		}
		judge(2)
		if got != tt.want {
			t.Errorf("posted %s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A request that has met one registration does not go on with another that it might have meant too; and what is private
// to a stream is no other's, whenever it was posted.
func TestTermSettles(t *testing.T) {
	table := NewTable()
	r, d := allocate(t, table, Most{1, 8}), local(table)
	regs := [2]Registration{{Memory: [][]byte{make([]byte, 8)}},
		{Memory: [][]byte{make([]byte, 8)}, Access: LocalWrite, Private: true}}
	r.Announce(&regs[0])
	d.FastRegister(r, &regs[0])
	r.Announce(&regs[1])
	early, late := r.Term(), r.Term()
	if f := d.LocalCheck(r, &early, 0, 1, false); f != None {
		t.Error(f)
	}
	d.LocalInvalidate(r)
	d.FastRegister(r, &regs[1])
	if f := d.LocalPlace(r, &early, 0, data); f != Invalidated {
		t.Errorf("into the second: %v", f)
	}
	if f := (Domain{table, pd, stream + 1, 0}).LocalPlace(r, &late, 0, data); f != OtherStream {
		t.Errorf("for another stream: %v", f)
	}
	if f := d.LocalPlace(r, &late, 0, data); f != None {
		t.Error(f)
	}
}

// A request that names no region means none.
func TestTermOfNothing(t *testing.T) {
	if term := (*Region)(nil).Term(); term != (Term{}) {
		t.Errorf("%+v", term)
	}
}

// Who has named a region when a registration was announced that is taken back then does not mean a later one.
func TestWithdrawnIsNotMeant(t *testing.T) {
	table := NewTable()
	r, d := allocate(t, table, Most{1, 8}), local(table)
	var back, later Registration
	r.Announce(&back)
	term := r.Term()
	r.Withdraw(&back)
	later.Memory, later.Access = [][]byte{make([]byte, 8)}, LocalWrite
	r.Announce(&later)
	if f := d.FastRegister(r, &later); f != None {
		t.Fatal(f)
	}
	if f := d.LocalPlace(r, &term, 0, data); f != Invalidated {
		t.Errorf("%v", f)
	}
	term = r.Term()
	if f := d.LocalPlace(r, &term, 0, data); f != None {
		t.Errorf("posted after it: %v", f)
	}
}

// A registration whose request was not posted after all is as if it had never been announced.
func TestWithdraw(t *testing.T) {
	r := allocate(t, NewTable(), Most{1, 8})
	for n := range 6 {
		before := r.Term()
		var g Registration
		r.Announce(&g)
		if announced := r.Term(); announced == before {
			t.Errorf("announced: %+v as before", announced)
		}
		r.Withdraw(&g)
		if after := r.Term(); after != before {
			t.Errorf("%+v, and %+v before", after, before)
		}
		if n%2 == 1 { // else there is another to be taken back
			r.Announce(&g)
		}
	}
}
