package rsockets

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
)

// A Hello is the private data by which each end tells the other of itself. All numbers are in network order, whatever
// the byte order of the host.
//
//	 0       1       2               4                       7       8
//	+-------+-------+---------------+-------+---------------+-------+
//	|Version| Flags |    Credits    | Kind  |   Reserved    | Maps  |
//	+-------+-------+---------------+-------+---------------+-------+
//	|                   address of the table (TO)                   |
//	+-------------------------------+-------------------------------+
//	|    its key (STag)             |     its entries               |
//	+-------------------------------+-------------------------------+
//	|       address of the first part of the ring (TO)              |
//	+-------------------------------+-------------------------------+
//	|    its key (STag)             |     its length in bytes      |
//	+-------------------------------+-------------------------------+
//
// Kind is reserved to rdma-core, which sends 0 and does not look at it.
type Hello struct {
	// Big tells that the host is big-endian: words and entries that it is sent are in its order.
	Big bool
	// Credits is how many words may be under way to this end: the receives that it has posted for them.
	Credits uint16
	// CountsMaps tells that this end returns a credit for a word of OpMap, too, as rdma-core does not; and that it says
	// Disconnect before it closes the connection also where both ends have said Shutdown before they knew of each
	// other's, so that one that is killed is told from one that has everything.
	CountsMaps bool
	// Maps is how many entries the table of maps has, which lies after that of ring entries. See MapsSaid.
	Maps int
	// Table is where the peer writes entries of EntryLen bytes, and Entries how many there are.
	Table   Place
	Entries uint32
	// Ring is the first part of the ring.
	Ring Entry
}

// A Place is memory of an end: an STag, and a tagged offset.
type Place struct {
	TO   uint64
	STag uint32
}

const (
	// Version is the only one.
	Version = 1
	// HelloLen is the length of a Hello in bytes.
	HelloLen = 40

	flagBig  = 0x01
	flagMaps = 0x02

	kindCountsMaps = 0x01

	helloFlags   = 1
	helloCredits = 2
	helloKind    = 4
	helloMaps    = 7
	helloTable   = 8
	helloRing    = 24
)

// MapsSaid returns how many of n entries of a table of maps a Hello can tell of: all of up to 128, 128 below 256, and
// above that the next lower multiple of 256, up to 32512.
func MapsSaid(n int) int { return mapsOf(mapsByte(n)) }

func mapsByte(n int) byte {
	if n <= 0x80 {
		return byte(max(n, 0))
	}
	return 0x80 | byte(min(n>>8, 0x7F))
}

func mapsOf(b byte) int {
	if b <= 0x80 {
		return int(b)
	}
	return int(b&^0x80) << 8
}

// AppendBinary appends the HelloLen bytes. Its error is nil.
func (h Hello) AppendBinary(b []byte) ([]byte, error) {
	flags, kind := byte(flagMaps), byte(0)
	if h.Big {
		flags |= flagBig
	}
	if h.CountsMaps {
		kind |= kindCountsMaps
	}
	b = append(b, Version, flags)
	b = binary.BigEndian.AppendUint16(b, h.Credits)
	b = append(b, kind, 0, 0, mapsByte(h.Maps))
	b = appendEntry(b, binary.BigEndian, Entry{Place: h.Table, Length: h.Entries})
	return appendEntry(b, binary.BigEndian, h.Ring), nil
}

// ParseHello reads the private data of a peer, which may be longer: MPA may have added to it. The error is an *Error,
// and wraps ErrVersion for another version than 1.
func ParseHello(b []byte) (Hello, error) {
	if len(b) == 0 || b[0] != Version {
		return Hello{}, &Error{Field: "private data",
			Reason: fmt.Sprintf("length %d, and it does not begin with version %d", len(b), Version), cause: ErrVersion}
	}
	if len(b) < HelloLen {
		return Hello{}, wrong("private data", "length %d, where it is to be %d", len(b), HelloLen)
	}
	table := entryAt(b[helloTable:], binary.BigEndian)
	h := Hello{
		Big:        b[helloFlags]&flagBig != 0,
		Credits:    binary.BigEndian.Uint16(b[helloCredits:]),
		CountsMaps: b[helloKind]&kindCountsMaps != 0,
		Table:      table.Place, Entries: table.Length,
		Ring: entryAt(b[helloRing:], binary.BigEndian),
	}
	if b[helloFlags]&flagMaps != 0 {
		h.Maps = mapsOf(b[helloMaps])
	}
	return h, h.check()
}

// check refuses what no end can work with: no table, or memory that does not end.
func (h *Hello) check() error {
	tables := uint64(h.Entries)*EntryLen + uint64(h.Maps)*MapLen
	switch {
	case h.Entries == 0:
		return wrong("private data", "a table without entries")
	case ddp.Wraps(h.Table.TO, tables):
		return wrong("private data", "a table at %#x that does not end", h.Table.TO)
	case !h.Ring.ends():
		return wrong("private data", "length %d at %#x, which does not end", h.Ring.Length, h.Ring.TO)
	}
	return nil
}

// Slot is where entry i of the table lies.
func (h *Hello) Slot(i int) Place {
	return Place{TO: h.Table.TO + uint64(i)*EntryLen, STag: h.Table.STag}
}

// MapSlot is where entry i of the table of maps lies.
func (h *Hello) MapSlot(i int) Place {
	return Place{TO: h.Table.TO + uint64(h.Entries)*EntryLen + uint64(i)*MapLen, STag: h.Table.STag}
}
