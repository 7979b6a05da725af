package perf

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// period is after how many bytes the pattern repeats. It is a prime, so that
// no two slots of a ring hold the same bytes, whatever the message size.
const period = 65521

// stampLen is the length in bytes of the sequence number in front of a message.
const stampLen = 8

type patternTable struct{ plain, complement [period]byte }

// patternBytes are the pattern and its complement, built when first needed.
var patternBytes = sync.OnceValue(func() *patternTable {
	t := new(patternTable)
	rng := rand.New(rand.NewPCG(0x6977617270, period)) // the same on both ends
	for i := range t.plain {
		t.plain[i] = byte(rng.Uint32())
		t.complement[i] = ^t.plain[i]
	}
	return t
})

// A pattern is what a slice's buffers are filled with: bytes that depend on
// the slice and, within it, on their offset in the ring.
type pattern struct{ salt int }

// fill writes the pattern from ring offset off on.
func (p pattern) fill(dst []byte, off int) { p.copy(dst, off, patternBytes().plain[:]) }

// poison writes the pattern's complement, so that every byte which is not
// overwritten by the right one differs from it.
func (p pattern) poison(dst []byte, off int) { p.copy(dst, off, patternBytes().complement[:]) }

func (p pattern) copy(dst []byte, off int, table []byte) {
	at := (p.salt + off) % period
	for len(dst) > 0 {
		n := copy(dst, table[at:])
		dst, at = dst[n:], 0
	}
}

// stamp writes a sequence number into the first bytes of a message: eight,
// or as many of the low-order ones as the message is long.
func stamp(msg []byte, seq uint64) {
	if len(msg) >= stampLen {
		binary.BigEndian.PutUint64(msg, seq)
		return
	}
	for i := range msg {
		msg[i] = byte(seq >> (8 * (len(msg) - 1 - i)))
	}
}

// firstDifference returns the index of the first byte that differs, -1 if
// the two, of equal length, are the same.
func firstDifference(got, want []byte) int {
	if bytes.Equal(got, want) {
		return -1
	}
	for i := range got {
		if got[i] != want[i] {
			return i
		}
	}
	return -1
}
