package main

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"hash/fnv"

	"github.com/goiwarp/iwarp"
)

// A slot holds one entry, or is all zero:
//
//	 0        4                 12        14           18
//	+--------+-----------------+---------+------------+-----+-------+
//	| CRC32C | version         | key len | value len  | key | value |
//	+--------+-----------------+---------+------------+-----+-------+
//
// A client may read a slot while the server writes it. Within one segment the library copies under a lock, so that a Read sees
// a WriteAt as a whole or not at all. But a Read of a slot that is longer than the MULPDU is answered in several segments, of
// which the first may be of the old entry and the last of the new one: the Read is torn. The CRC is over all that
// follows it, and tells.
const headerLen = 18

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type entry struct {
	version    uint64 // counts what was ever put; 0: there is no entry
	key, value string
}

var (
	errTorn    = errors.New("the slot was read while it was written")
	errTooLong = errors.New("key and value do not fit into a slot")
	errFull    = errors.New("the table is full where the key belongs")
	errNoKey   = errors.New("no such key")
)

// encode returns what is written into the slot.
func (e entry) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 4), e.version)
	b = binary.BigEndian.AppendUint16(b, uint16(len(e.key)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.value)))
	b = append(append(b, e.key...), e.value...)
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// parse returns the entry in a slot that was read. A slot that was torn is errTorn: read it again.
func parse(slot []byte) (e entry, err error) {
	e.version = binary.BigEndian.Uint64(slot[4:])
	if e.version == 0 {
		return e, nil
	}
	key, value := int(binary.BigEndian.Uint16(slot[12:])), int64(binary.BigEndian.Uint32(slot[14:]))
	end := headerLen + int64(key) + value
	if end > int64(len(slot)) || crc32.Checksum(slot[4:end], castagnoli) != binary.BigEndian.Uint32(slot) {
		return entry{}, errTorn
	}
	e.key, e.value = string(slot[headerLen:headerLen+key]), string(slot[headerLen+key:end])
	return e, nil
}

// probes is in how many slots a key may be: the one of its hash, and those that follow.
const probes = 8

// hash numbers the first slot of a key, the same at both ends.
func hash(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return int(h.Sum32() >> 1)
}

// A table is the server's memory. One goroutine puts; clients read at any time.
type table struct {
	mr             *iwarp.MR
	slots, slotLen int
	version        uint64
}

// put writes an entry. The memory is written by WriteAt only, as peers may read it; reading it plainly is no race, as nobody
// else writes it.
func (t *table) put(key, value string) error {
	if len(key) > 1<<16-1 || headerLen+len(key)+len(value) > t.slotLen {
		return errTooLong
	}
	for probe := range probes {
		at := (hash(key) + probe) % t.slots * t.slotLen
		there, err := parse(t.mr.Bytes()[at : at+t.slotLen])
		if err != nil {
			return err
		}
		if there.version == 0 || there.key == key {
			t.version++
			_, err := t.mr.WriteAt(entry{t.version, key, value}.encode(), int64(at))
			return err
		}
	}
	return errFull
}
