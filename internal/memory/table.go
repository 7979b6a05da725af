package memory

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/stags"
)

// Quarantine is how many STags must have been retired after an STag before its index
// may name another region or window.
const Quarantine = 1 << 16

// reservedSTags are never given out: 0 is the verbs' privileged STag, whose index names
// nothing else either (RDMA verbs 7), and 1 is what siw, RNICs and this project put into a
// zero-length Ready-to-Receive message, where it names nothing.
const reservedSTags = 1 << keyBits

// The key of an STag is its lowest bits.
const (
	keyBits = stags.KeyBits
	keyMask = 1<<keyBits - 1
)

// maxTags bounds what there can be in a table: half of the indices that STags have, so that a
// free one is soon found.
const maxTags = 1 << (31 - keyBits)

// A Table holds the regions and windows of one RNIC. Its methods may be called by any
// goroutine.
type Table struct {
	mu      sync.RWMutex
	tags    stags.Table[tag]   // by the STag with a key of 0
	windows map[uint32]*Window // bound to a stream, by that: the first of several
	streams map[uint32]int     // by PD: how many streams may use its regions
	stream  uint32             // the last number that was given to a stream
	retired map[uint32]struct{}
	order   []uint32 // ring of retired indices, oldest at next
	next    int
	random  func([]byte) (int, error)
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		windows: make(map[uint32]*Window),
		streams: make(map[uint32]int),
		retired: make(map[uint32]struct{}),
		random:  rand.Read,
	}
}

// Options says who may use a region and how.
type Options struct {
	Access Access
	PD     uint32
	Stream uint32 // 0: every stream of the PD
	Base   uint64 // tagged offset of the first byte
	// Vanishes tells that the memory is not the Go runtime's, and that it may be gone before the region is revoked.
	Vanishes bool
}

// ErrAccess reports rights that do not exist.
var ErrAccess = errors.New("access rights that do not exist")

// ErrWrap reports a region whose end does not fit the 64 bits of a tagged
// offset: its last byte could not be reached.
var ErrWrap = errors.New("tagged offsets of the region exceed 64 bits")

// ErrFull reports a table with as many regions and windows as there can be.
var ErrFull = errors.New("no STag is left for another region or window")

// Register makes buf reachable under a new STag, which peers cannot guess and
// which has not been in use lately (RFC 5042, section 6.1.1).
func (t *Table) Register(buf []byte, o Options) (*Region, error) {
	r, err := t.region(buf, o)
	if err != nil {
		return nil, err
	}
	err = t.enter(&r.tag, func(stag uint32) *grant {
		r.first.stag = stag
		return &r.first.grant
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// region returns a region that is not in the table yet.
func (t *Table) region(buf []byte, o Options) (*Region, error) {
	if ddp.Wraps(o.Base, uint64(len(buf))) {
		return nil, ErrWrap
	}
	if o.Access&^allAccess != 0 {
		return nil, fmt.Errorf("%w: %#x", ErrAccess, uint8(o.Access&^allAccess))
	}
	r := &Region{tag: tag{table: t, pd: o.PD}}
	x := &r.first
	newExtent(x, buf)
	x.vanishes = o.Vanishes
	x.owner, x.pd, x.stream, x.access, x.base = r, o.PD, o.Stream, o.Access.whole(), o.Base
	return r, nil
}

// enter puts a tag into the table, under a new STag, with what that grants.
func (t *Table) enter(g *tag, granted func(stag uint32) *grant) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	stag, err := t.newSTag()
	if err != nil {
		return err
	}
	g.index = stag &^ keyMask
	g.stand(granted(stag))
	t.tags.Put(g.index, g)
	return nil
}

// newSTag draws until it finds an STag whose place in the table is free, and which was not in use lately. That rarely
// takes more than two draws, because at least half of the places are free.
func (t *Table) newSTag() (uint32, error) {
	if t.tags.Len() >= maxTags {
		return 0, ErrFull
	}
	var b [4]byte
	for {
		if _, err := t.random(b[:]); err != nil {
			return 0, fmt.Errorf("memory: no random STag to be had: %w", err)
		}
		stag := binary.BigEndian.Uint32(b[:])
		_, recent := t.retired[stag&^keyMask]
		if stag >= reservedSTags && !recent && !t.tags.Taken(stag) {
			return stag, nil
		}
	}
}

// Revoke ends the region: when it returns, no access is under way and none
// will be granted. It fails with InvalidSTag if the region was not in the table (any more), and
// with HasWindows if windows are bound to it (RDMA verbs 7: to deallocate "fails with bound
// windows").
func (t *Table) Revoke(r *Region) Fault {
	if !r.revoke() {
		return HasWindows
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.remove(&r.tag) {
		return InvalidSTag
	}
	return None
}

// remove reports whether a tag was in the table. The caller holds the lock.
func (t *Table) remove(g *tag) bool {
	found := t.tags.Get(g.index) == g
	if found {
		t.tags.Delete(g.index)
		t.retire(g.index)
	}
	return found
}

func (t *Table) retire(index uint32) {
	if len(t.order) < Quarantine {
		t.order = append(t.order, index)
	} else {
		delete(t.retired, t.order[t.next])
		t.order[t.next] = index
		t.next = (t.next + 1) % Quarantine
	}
	t.retired[index] = struct{}{}
}

// AddStream counts a stream of a Protection Domain, until RemoveStream.
func (t *Table) AddStream(pd uint32) {
	t.mu.Lock()
	t.streams[pd]++
	t.mu.Unlock()
}

// RemoveStream is the end of a stream that AddStream has counted.
func (t *Table) RemoveStream(pd uint32) {
	t.mu.Lock()
	if t.streams[pd]--; t.streams[pd] <= 0 {
		delete(t.streams, pd)
	}
	t.mu.Unlock()
}

// NewStream returns a number for a connection, never 0, that regions can be bound
// to. Each connection has one of its own: what was bound to an earlier one of the
// same QP does not serve it (RFC 5040, section 8.1.1: "if an STag is limited in
// scope to a single Stream, no other Stream can use the STag").
func (t *Table) NewStream() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stream++; t.stream == 0 {
		t.stream++
	}
	return t.stream
}

// shared reports whether more than one stream may use what is granted.
func (t *Table) shared(g *grant) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return g.stream == 0 && t.streams[g.pd] > 1
}

// lookup returns what an STag stands for, nil if nothing has that index and that key. Whoever looks up releases it.
func (t *Table) lookup(stag uint32) *grant {
	found := t.tags.Get(stag &^ keyMask)
	if found == nil {
		return nil
	}
	g := found.hold()
	if g.stag == stag {
		return g
	}
	g.release()
	return nil
}
