package memory

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// exposures are the ways to expose n bytes at an offset of a buffer, and no others of it, under a base of
// their own.
var exposures = map[string]func(t *testing.T, table *Table, buf []byte, at, n int, base uint64) (stag uint32){
	"region": func(t *testing.T, table *Table, buf []byte, at, n int, base uint64) uint32 {
		r, err := table.Register(buf[at:at+n], Options{Access: allRemote, PD: pd, Base: base})
		testrig.Must(t, err)
		return r.STag()
	},
	"window": func(t *testing.T, table *Table, buf []byte, at, n int, base uint64) uint32 {
		r, err := table.Register(buf, Options{Access: LocalWrite, PD: pd, Base: 77})
		testrig.Must(t, err)
		w := window(t, table, false)
		b := Binding{Region: r, Offset: at, Length: n, Base: base, Access: RemoteRead | RemoteWrite}
		if f := local(table).Bind(w, b); f != None {
			t.Fatal(f)
		}
		return w.STag()
	},
	"fast registration of two pieces": func(t *testing.T, table *Table, buf []byte, at, n int, base uint64) uint32 {
		r := allocate(t, table, Most{2, len(buf)})
		halves := [][]byte{buf[at : at+n/2], buf[at+n/2 : at+n]}
		g := &Registration{Memory: halves, Base: base, Access: RemoteRead | RemoteWrite}
		if f := local(table).FastRegister(r, g); f != None {
			t.Fatal(f)
		}
		return r.STag()
	},
}

// TestPartOfBuffer exposes each of several parts of a buffer in every way, and has a peer read and write each
// range near it.
//
// Proves Z10, Z11, Z12, Z18: what lies in the part is reached, at its offset, and not an byte of the buffer
// beside it.
func TestPartOfBuffer(t *testing.T) {
	for name, expose := range exposures {
		for _, at := range []int{0, 1, 8, 20} {
			for _, base := range []uint64{0, 100, math.MaxUint64 - 20} {
				const n = 12
				table, buf := NewTable(), numbered(32)
				table.AddStream(pd)
				stag := expose(t, table, buf, at, n, base)
				for off := -at; off < 32-at; off++ {
					for _, length := range []int{1, 2, n, n + 1} {
						tryPart(t, name, local(table), stag, buf, part{at, n, off, length, base})
					}
				}
			}
		}
	}
}

// A part of a buffer, and a range that a peer tries, from the part's first byte on.
type part struct {
	at, n, off, length int
	base               uint64
}

func tryPart(t *testing.T, name string, d Domain, stag uint32, buf []byte, p part) {
	t.Helper()
	inside, to, before := p.off >= 0 && p.off+p.length <= p.n, p.base+uint64(p.off), bytes.Clone(buf)
	var got taken
	var want []byte
	if inside {
		want = buf[p.at+p.off:][:p.length]
	}
	if f := d.Load(&got, p.length, stag, to); (f == None) != inside || !bytes.Equal(got, want) {
		t.Fatalf("%s, %+v: read % x: %v", name, p, got, f)
	}
	if f := d.CheckRead(stag, to, uint32(p.length)); (f == None) != inside {
		t.Fatalf("%s, %+v: a request to read: %v", name, p, f)
	}
	data := bytes.Repeat([]byte{0xee}, p.length)
	if f := d.Place(stag, to, layout.Plain(data)); (f == None) != inside {
		t.Fatalf("%s, %+v: written: %v", name, p, f)
	}
	var run Run
	if begun := d.BeginPlace(&run, stag, to, p.length); begun != inside {
		t.Fatalf("%s, %+v: a Run begins: %t", name, p, begun)
	}
	if inside && run.Place(to+uint64(p.n-p.off), []byte{0xdd}) {
		t.Fatalf("%s, %+v: a Run places an byte behind the part", name, p)
	}
	run.End()
	if inside {
		before = slices.Replace(before, p.at+p.off, p.at+p.off+p.length, data...)
	}
	if !bytes.Equal(buf, before) {
		t.Fatalf("%s, %+v: the buffer is % x", name, p, buf)
	}
	copy(buf, numbered(len(buf)))
}
