package memory

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
)

// A pool of pieces of one byte each, of which an STag stands for one at a time: that which its key says.
type keyed struct {
	table   *Table
	pieces  [256][]byte
	begin   func(key uint8) Fault
	target  Target
	current func() uint32 // the STag
	tag     *tag
}

func keyedWindow(t *testing.T) *keyed {
	k := &keyed{table: NewTable()}
	buf := make([]byte, len(k.pieces))
	for i := range k.pieces {
		k.pieces[i] = buf[i : i+1]
	}
	r, err := k.table.Register(buf, Options{Access: LocalWrite, PD: pd})
	if err != nil {
		t.Fatal(err)
	}
	w := window(t, k.table, false)
	k.target, k.current, k.tag = w, w.STag, &w.tag
	k.begin = func(key uint8) Fault {
		return local(k.table).Bind(w, Binding{Region: r, Offset: int(key), Length: 1, Base: uint64(key),
			Access: RemoteWrite | RemoteRead, Key: key})
	}
	return k
}

func keyedRegion(t *testing.T) *keyed {
	k := &keyed{table: NewTable()}
	for i := range k.pieces {
		k.pieces[i] = make([]byte, 1)
	}
	r := allocate(t, k.table, Most{Pieces: 1, Bytes: 1})
	k.target, k.current, k.tag = r, r.STag, &r.tag
	k.begin = func(key uint8) Fault {
		return local(k.table).FastRegister(r, &Registration{Memory: [][]byte{k.pieces[key]}, Base: uint64(key),
			Access: RemoteWrite | RemoteRead, Key: key})
	}
	return k
}

func eachKeyed(t *testing.T, f func(t *testing.T, k *keyed)) {
	t.Run("window", func(t *testing.T) { f(t, keyedWindow(t)) })
	t.Run("region", func(t *testing.T) { f(t, keyedRegion(t)) })
}

// next invalidates, and has the STag stand for another piece.
func (k *keyed) next(t *testing.T, key uint8) {
	if f := local(k.table).LocalInvalidate(k.target); f != None {
		t.Error(f)
	}
	if f := k.begin(key); f != None {
		t.Error(f)
	}
}

// What somebody holds stays what it was, whatever the STag stands for meanwhile; what nobody holds is used again,
// without memory being taken.
func TestHeldStays(t *testing.T) {
	eachKeyed(t, func(t *testing.T, k *keyed) {
		if f := k.begin(1); f != None {
			t.Fatal(f)
		}
		g := k.tag.hold()
		was := g.offer
		for key := range uint8(6) {
			k.next(t, key)
			if g.offer != was || g.usable() {
				t.Fatalf("after %d: %+v, usable: %t", key, g.offer, g.usable())
			}
		}
		if now := k.tag.cur.Load(); now == g || !now.idle() {
			t.Error("what is held stands for something else, or its successor is held, too")
		}
		g.release()
		key := uint8(0)
		if n := testing.AllocsPerRun(100, func() { key++; k.next(t, key) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
		if !k.tag.cur.Load().idle() {
			t.Error("somebody holds what was looked at")
		}
	})
}

// What has another in its place since it was found is not held, and can become another all the same.
func TestFoundTooLate(t *testing.T) {
	eachKeyed(t, func(t *testing.T, k *keyed) {
		if f := k.begin(1); f != None {
			t.Fatal(f)
		}
		g := k.tag.cur.Load()
		if !k.tag.still(g) || g.idle() {
			t.Error("what the STag stands for is not held")
		}
		g.release()
		local(k.table).LocalInvalidate(k.target)
		if k.tag.cur.Load() == g { // of a region, which stays what it was until another takes its place
			k.begin(2)
		}
		if k.tag.still(g) || !g.idle() {
			t.Error("what it stood for is held")
		}
	})
}

// Peers that name all STags that there were, while what they stand for changes all the time, reach the bytes of the
// key that they name, or none.
func TestKeysFlood(t *testing.T) {
	eachKeyed(t, func(t *testing.T, k *keyed) {
		if f := k.begin(0); f != None {
			t.Fatal(f)
		}
		var over atomic.Bool
		var reached atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for !over.Load() {
					reached.Add(k.access(t))
				}
			})
		}
		for n := 0; n < 20000 || reached.Load() < 100 && n < 2000000; n++ {
			k.next(t, uint8(n))
		}
		over.Store(true)
		wg.Wait()
		for i, p := range k.pieces {
			if p[0] != 0 && p[0] != byte(i) {
				t.Errorf("the piece of key %d has been written by key %d", i, p[0])
			}
		}
		t.Log(reached.Load(), "accesses")
	})
}

// access has a peer write and read by the present STag, and returns how often it reached something.
func (k *keyed) access(t *testing.T) (reached int64) {
	d, stag := local(k.table), k.current()
	key := uint8(stag)
	if d.Place(stag, uint64(key), layout.Plain([]byte{key})) == None {
		reached++
	}
	var run Run
	if d.BeginPlace(&run, stag, uint64(key), 1) {
		run.Place(uint64(key), []byte{key})
		run.End()
		reached++
	}
	got := make([]byte, 1)
	if d.Load(into(got), 1, stag, uint64(key)) == None {
		if reached++; got[0] != key && got[0] != 0 {
			t.Errorf("key %d reads the byte of key %d", key, got[0])
		}
	}
	return reached
}
