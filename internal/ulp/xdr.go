package ulp

import "encoding/binary"

// xdr reads the items of RFC 4506. After the end of the bytes it reads zeros, and bad is set.
type xdr struct {
	b   []byte
	bad bool
}

func (x *xdr) take(n int) []byte {
	if n < 0 || n > len(x.b) {
		x.b, x.bad = nil, true
		return nil
	}
	part := x.b[:n]
	x.b = x.b[n:]
	return part
}

func (x *xdr) u32() uint32 {
	if b := x.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (x *xdr) u64() uint64 { return uint64(x.u32())<<32 | uint64(x.u32()) }

// flag reads a boolean, which is nothing but 0 or 1.
func (x *xdr) flag() bool {
	v := x.u32()
	x.bad = x.bad || v > 1
	return v == 1
}

// opaque passes over bytes of a length that comes before them, up to most.
func (x *xdr) opaque(most uint32) {
	n := x.u32()
	if n > most {
		x.bad = true
		return
	}
	x.take(int(n+3) &^ 3)
}

// words passes over an array of words, of up to most.
func (x *xdr) words(most uint32) {
	n := x.u32()
	if n > most {
		x.bad = true
		return
	}
	x.take(int(n) * 4)
}
