package memory

import (
	"encoding/binary"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/layout"
)

// place copies p to offset off. The caller holds the locks of these bytes.
func (x *extent) place(off int, p layout.Content) {
	for p.Len() > 0 {
		b := x.piece(off, p.Len())
		if len(b) == p.Len() {
			place(b, p)
			return
		}
		front, rest := p.Cut(len(b))
		place(b, front)
		off, p = off+len(b), rest
	}
}

// place copies src to dst, which is as long. A consumer may wait for a peer's Write
// by loading its last bytes atomically, so that these are stored as one word after
// all others: the last eight where they end at an address that is a multiple of
// eight, or else the last four at a multiple of four.
func place(dst []byte, src layout.Content) {
	last := len(dst) - lastWord(dst)
	if src.Whole() {
		b := src.Squeeze()
		copy(dst[:last], b)
		storeLast(dst[last:], b[last:])
		return
	}
	front, end := src.Cut(last)
	front.CopyTo(dst[:last])
	storeLast(dst[last:], end.Squeeze())
}

// storeLast stores a word, or nothing.
func storeLast(dst, word []byte) {
	switch len(word) {
	case 8:
		store64((*uint64)(unsafe.Pointer(&dst[0])), binary.NativeEndian.Uint64(word))
	case 4:
		store32((*uint32)(unsafe.Pointer(&dst[0])), binary.NativeEndian.Uint32(word))
	}
}

// lastWord returns how many of the last bytes of b are stored as one word: 8, 4 or 0.
func lastWord(b []byte) int {
	end := uintptr(unsafe.Pointer(unsafe.SliceData(b))) + uintptr(len(b))
	switch {
	case len(b) >= 8 && end%8 == 0:
		return 8
	case len(b) >= 4 && end%4 == 0:
		return 4
	}
	return 0
}
