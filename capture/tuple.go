package capture

import (
	"encoding/binary"
	"net/netip"
)

// A tuple is the two ends of a TCP connection: a is the one with the lower address,
// or the lower port. It has no padding, so that maps hash it as one run of bytes.
type tuple struct {
	aHigh, aLow, bHigh, bLow uint64 // addresses; one of IPv4 is in the low 32 bits
	ports                    uint64 // of a, of b, and 1 for IPv6
}

// A packet's tuple has its source as a until it is put in order.

func (t *tuple) setIPv4(b []byte) {
	t.aHigh, t.bHigh, t.ports = 0, 0, 0
	t.aLow, t.bLow = uint64(binary.BigEndian.Uint32(b)), uint64(binary.BigEndian.Uint32(b[4:]))
}

func (t *tuple) setIPv6(b []byte) {
	t.aHigh, t.aLow = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	t.bHigh, t.bLow = binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint64(b[24:])
	t.ports = 1
}

func (t *tuple) setPorts(a, b uint16) { t.ports |= uint64(a)<<48 | uint64(b)<<32 }

// order makes a of the lower end, and reports whether that was b.
func (t *tuple) order() (swapped bool) {
	if t.lower() {
		return false
	}
	t.aHigh, t.aLow, t.bHigh, t.bLow = t.bHigh, t.bLow, t.aHigh, t.aLow
	t.ports = t.ports<<16&(0xffff<<48) | t.ports>>16&(0xffff<<32) | t.ports&1
	return true
}

// lower reports whether a is the lower end, or both are one.
func (t *tuple) lower() bool {
	if t.aHigh != t.bHigh {
		return t.aHigh < t.bHigh
	}
	if t.aLow != t.bLow {
		return t.aLow < t.bLow
	}
	return t.ports>>48 <= t.ports>>32&0xffff
}

// ends returns the addresses of a and b.
func (t *tuple) ends() (a, b netip.AddrPort) {
	return netip.AddrPortFrom(t.addr(t.aHigh, t.aLow), uint16(t.ports>>48)),
		netip.AddrPortFrom(t.addr(t.bHigh, t.bLow), uint16(t.ports>>32))
}

func (t *tuple) addr(high, low uint64) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], high)
	binary.BigEndian.PutUint64(b[8:], low)
	if t.ports&1 == 0 {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.AddrFrom16(b)
}
