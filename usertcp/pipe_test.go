package usertcp

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"
)

// TestFates holds that a Path does what it is told, as often as it is told, and the same again with the same Seed.
func TestFates(t *testing.T) {
	const n = 100_000
	p := Path{Seed: 7, Loss: .01, Duplicate: .005, Reorder: .02, Late: time.Millisecond}
	draw := func(p Path) (all []fate) {
		for f := newFates(p); len(all) < n; {
			all = append(all, f.next())
		}
		return all
	}
	first := draw(p)
	if !slices.Equal(first, draw(p)) {
		t.Error("other decisions with the same seed")
	}
	other := p
	other.Seed++
	if slices.Equal(first, draw(other)) {
		t.Error("the same decisions with another seed")
	}
	lost, twice, late := 0, 0, 0
	for _, f := range first {
		if f.lost {
			lost++
		}
		if f.twice {
			twice++
		}
		if f.late > 0 {
			late++
		}
		if f.late > p.Late || f.second > p.Late {
			t.Fatalf("%+v", f)
		}
	}
	for _, c := range []struct {
		name     string
		got      int
		expected float64
	}{{"lost", lost, p.Loss}, {"twice", twice, p.Duplicate}, {"late", late, p.Reorder}} {
		if share := float64(c.got) / n; share < .9*c.expected || share > 1.1*c.expected {
			t.Errorf("%s: %.4f, want %.4f", c.name, share, c.expected)
		}
	}
	p.Loss = 1
	for i, f := range draw(p) {
		if f.late != first[i].late || f.twice != first[i].twice {
			t.Fatal("whether packets are late follows from how many are lost")
		}
	}
}

// numbers sends and receives numbered packets.
func numbers(t *testing.T, n int, p Path) []uint32 {
	t.Helper()
	a, b := Pipe(1500, p, Path{})
	got := make(chan uint32, 2*n)
	done := make(chan error)
	go func() {
		done <- b.Receive(func(p []byte) { got <- binary.BigEndian.Uint32(p) })
	}()
	for i := range n {
		a.Send(binary.BigEndian.AppendUint32(nil, uint32(i)))
	}
	s := a.Sent()
	var all []uint32
	for len(all) < s.Packets-s.Lost-s.Overflowed+s.Duplicated {
		all = append(all, <-got)
	}
	must(t, b.Close())
	must(t, <-done)
	if s.Packets != n || len(got) > 0 {
		t.Errorf("%+v, and %d more have arrived", s, len(got))
	}
	return all
}

// TestPipe holds what arrives over a Pipe.
func TestPipe(t *testing.T) {
	if got := numbers(t, 5000, Path{}); !slices.IsSorted(got) || len(got) != 5000 {
		t.Errorf("%d of 5000 arrived, in order: %t", len(got), slices.IsSorted(got))
	}
	if got := numbers(t, 5000, Path{Delay: time.Millisecond, Loss: .1}); !slices.IsSorted(got) ||
		len(got) > 4700 || len(got) < 4300 {
		t.Errorf("%d of 5000 arrived, in order: %t", len(got), slices.IsSorted(got))
	}
	late := numbers(t, 5000, Path{Delay: time.Millisecond, Reorder: .1, Duplicate: .1})
	if slices.IsSorted(late) {
		t.Error("none was late")
	}
	slices.Sort(late)
	if all := slices.Compact(slices.Clone(late)); len(all) != 5000 || len(late) < 5300 {
		t.Errorf("%d arrived, %d of them others", len(late), len(all))
	}
	a, _ := Pipe(1500, Path{Delay: time.Hour, Queue: 10}, Path{})
	for range 50 {
		a.Send(make([]byte, 100))
	}
	if got := a.Sent(); got != (PathStats{Packets: 50, Overflowed: 40}) {
		t.Errorf("50 packets into a queue of 10: %+v", got)
	}
	for path, want := range map[Path]PathStats{
		{Loss: 1}: {Packets: 10, Lost: 10}, {Reorder: 1, Duplicate: 1}: {Packets: 10, Late: 10, Duplicated: 10},
	} {
		a, _ := Pipe(1500, path, Path{})
		for range 10 {
			a.Send(make([]byte, 100))
		}
		if got := a.Sent(); got != want {
			t.Errorf("%+v: counted %+v", path, got)
		}
	}
	begun := time.Now()
	numbers(t, 100, Path{Rate: 4000}) // of 400 bytes
	if took := time.Since(begun); took < 100*time.Millisecond {
		t.Errorf("400 bytes at 4000 per second took %v", took)
	}
}
