package memory

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// Quarantine is how many STags must have been retired after an STag before it
// may name another region.
const Quarantine = 1 << 16

// reservedSTags are never given out: 0 is the verbs' privileged STag, and 1 is
// what siw, RNICs and this project put into a zero-length Ready-to-Receive
// message, where it names nothing.
const reservedSTags = 2

// A Table holds the regions of one RNIC. Its methods may be called by any
// goroutine.
type Table struct {
	mu      sync.RWMutex
	regions map[uint32]*Region
	streams map[uint32]int // by PD: how many streams may use its regions
	stream  uint32         // the last number that was given to a stream
	retired map[uint32]struct{}
	order   []uint32 // ring of retired STags, oldest at next
	next    int
	random  func([]byte) (int, error)
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		regions: make(map[uint32]*Region),
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
	Base   uint64 // tagged offset of the first octet
}

// ErrAccess reports rights that do not exist.
var ErrAccess = errors.New("access rights that do not exist")

// ErrWrap reports a region whose end does not fit the 64 bits of a tagged
// offset: its last octet could not be reached.
var ErrWrap = errors.New("tagged offsets of the region exceed 64 bits")

// Register makes buf reachable under a new STag, which peers cannot guess and
// which has not been in use lately (RFC 5042, section 6.1.1).
func (t *Table) Register(buf []byte, o Options) (*Region, error) {
	if n := uint64(len(buf)); o.Base+n < n {
		return nil, ErrWrap
	}
	if o.Access&^allAccess != 0 {
		return nil, fmt.Errorf("%w: %#x", ErrAccess, uint8(o.Access&^allAccess))
	}
	if o.Access&(RemoteWrite|RemoteAtomic) != 0 {
		o.Access |= LocalWrite // what a peer may change, its owner may too
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	stag, err := t.newSTag()
	if err != nil {
		return nil, err
	}
	r := &Region{
		table: t, stag: stag, base: o.Base, size: len(buf), access: o.Access, pd: o.PD, stream: o.Stream,
		locks: newStripes(len(buf)), buf: buf[:len(buf):len(buf)],
	}
	if r.buf == nil {
		r.buf = []byte{}
	}
	t.regions[stag] = r
	return r, nil
}

// newSTag draws until it finds a free STag. With 2^32 of them and memory for
// only a small part, a second draw is rare.
func (t *Table) newSTag() (uint32, error) {
	var b [4]byte
	for {
		if _, err := t.random(b[:]); err != nil {
			return 0, fmt.Errorf("memory: no random STag to be had: %w", err)
		}
		stag := binary.BigEndian.Uint32(b[:])
		_, used := t.regions[stag]
		_, recent := t.retired[stag]
		if stag >= reservedSTags && !used && !recent {
			return stag, nil
		}
	}
}

// Revoke ends the region: when it returns, no access is under way and none
// will be granted. It reports whether the region was in the table.
func (t *Table) Revoke(r *Region) bool {
	t.mu.Lock()
	found := t.regions[r.stag] == r
	if found {
		delete(t.regions, r.stag)
		t.retire(r.stag)
	}
	t.mu.Unlock()
	r.revoke()
	return found
}

func (t *Table) retire(stag uint32) {
	if len(t.order) < Quarantine {
		t.order = append(t.order, stag)
	} else {
		delete(t.retired, t.order[t.next])
		t.order[t.next] = stag
		t.next = (t.next + 1) % Quarantine
	}
	t.retired[stag] = struct{}{}
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

// shared reports whether more than one stream may use the region.
func (t *Table) shared(r *Region) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return r.stream == 0 && t.streams[r.pd] > 1
}

func (t *Table) lookup(stag uint32) *Region {
	t.mu.RLock()
	r := t.regions[stag]
	t.mu.RUnlock()
	return r
}
