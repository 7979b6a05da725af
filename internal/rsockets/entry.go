package rsockets

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/ddp"
)

// An Entry is a part of an end's memory, into which its peer may write.
//
//	 0                               8               12              16
//	+-------------------------------+---------------+---------------+
//	|         address (TO)          |  key (STag)   |    length     |
//	+-------------------------------+---------------+---------------+
//
// In a table it is in the byte order of the table's owner.
type Entry struct {
	Place
	Length uint32 // bytes
}

// EntryLen is the length of an Entry in bytes.
const EntryLen = 16

const (
	entryKey    = 8
	entryLength = 12
)

func order(big bool) binary.ByteOrder {
	if big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func appendEntry(b []byte, o binary.ByteOrder, e Entry) []byte {
	var raw [EntryLen]byte
	o.PutUint64(raw[:], e.TO)
	o.PutUint32(raw[entryKey:], e.STag)
	o.PutUint32(raw[entryLength:], e.Length)
	return append(b, raw[:]...)
}

// Append appends the EntryLen bytes in a byte order.
func (e Entry) Append(b []byte, big bool) []byte { return appendEntry(b, order(big), e) }

// entryAt reads EntryLen bytes.
func entryAt(b []byte, o binary.ByteOrder) Entry {
	return Entry{Place: Place{TO: o.Uint64(b), STag: o.Uint32(b[entryKey:])}, Length: o.Uint32(b[entryLength:])}
}

// ends reports whether the bytes end before the last tagged offset.
func (e *Entry) ends() bool { return !ddp.Wraps(e.TO, uint64(e.Length)) }

// splitFront returns the first n bytes, and leaves the others.
func (e *Entry) splitFront(n uint32) Entry {
	first := Entry{Place: e.Place, Length: n}
	e.TO += uint64(n)
	e.Length -= n
	return first
}

// A Map says that the peer may write memory of an end, at offsets which that end has chosen.
//
//	 0                               8               16      20      24
//	+-------------------------------+---------------+-------+-------+
//	|            offset             | address (TO)  |  key  |length |
//	+-------------------------------+---------------+-------+-------+
//
// It lies in a table of the peer's, in the peer's byte order.
type Map struct {
	Offset uint64
	Entry
}

// MapLen is the length of a Map in bytes.
const MapLen = 24

const mapEntry = 8

// Append appends the MapLen bytes in a byte order.
func (m Map) Append(b []byte, big bool) []byte {
	var raw [mapEntry]byte
	order(big).PutUint64(raw[:], m.Offset)
	return m.Entry.Append(append(b, raw[:]...), big)
}

// ParseMap reads MapLen bytes. The error is an *Error.
func ParseMap(b []byte, big bool) (Map, error) {
	if len(b) < MapLen {
		return Map{}, wrong("map", "length %d, where it is to be %d", len(b), MapLen)
	}
	m := Map{Offset: order(big).Uint64(b), Entry: entryAt(b[mapEntry:], order(big))}
	if !m.ends() || ddp.Wraps(m.Offset, uint64(m.Length)) {
		return Map{}, wrong("map", "length %d at offset %#x and address %#x, which does not end",
			m.Length, m.Offset, m.TO)
	}
	return m, nil
}

// Find returns where n bytes from an offset on lie, as far as the map has them; its Length says how far.
func (m *Map) Find(offset uint64, n int) (Entry, bool) {
	if offset < m.Offset || offset-m.Offset >= uint64(m.Length) {
		return Entry{}, false
	}
	skip := offset - m.Offset
	return Entry{
		Place:  Place{TO: m.TO + skip, STag: m.STag},
		Length: uint32(min(uint64(m.Length)-skip, uint64(max(n, 0)))),
	}, true
}

// peerMaps are what the peer has mapped, by the entries of our table. That one is not mapped any more is never told: it
// stays here until its entry is used again, and a newer one at the same offsets goes before it.
type peerMaps struct {
	maps  []Map
	since []uint64 // which of all that have come each is; 0: none
	came  uint64
}

func newPeerMaps(n int) peerMaps { return peerMaps{maps: make([]Map, n), since: make([]uint64, n)} }

// set has an entry hold what has just come.
func (p *peerMaps) set(i uint32, m Map) {
	p.came++
	p.maps[i], p.since[i] = m, p.came
}

// find is Endpoint.Find.
func (p *peerMaps) find(offset uint64, n int) (place Entry, found bool) {
	var since uint64
	for i := range p.maps {
		if at, has := p.maps[i].Find(offset, n); has && p.since[i] > since {
			place, found, since = at, true, p.since[i]
		}
	}
	for i := range p.maps {
		if newer := &p.maps[i]; p.since[i] > since && newer.Length > 0 && newer.Offset > offset {
			place.Length = uint32(min(uint64(place.Length), newer.Offset-offset))
		}
	}
	return place, found
}
