package capture

import (
	"math/bits"
	"time"
)

// Options of an Interface Description Block, draft-ietf-opsawg-pcapng, section 4.2.
const (
	optEnd      = 0
	optTsresol  = 9
	optTsoffset = 14
)

// An ifDesc is what a section says of one interface.
type ifDesc struct {
	link    LinkType
	snapLen uint32 // bytes, 0 for all
	ticks   uint64 // in a second
	shift   int64  // seconds to add to times
}

// ifDesc returns the interface of a packet.
func (f *pcapng) ifDesc(id uint32) (*ifDesc, error) {
	if int64(id) >= int64(len(f.ifs)) {
		return nil, damagef("a packet of interface %d of %d", id, len(f.ifs))
	}
	return &f.ifs[id], nil
}

// describe reads the body of an Interface Description Block.
func (f *pcapng) describe(b []byte) error {
	if len(b) < 8 {
		return damagef("an Interface Description Block of %d bytes", len(b))
	}
	if len(f.ifs) == maxInterfaces {
		return damagef("more than %d interfaces", maxInterfaces)
	}
	i := ifDesc{link: LinkType(f.order.Uint16(b)), snapLen: f.order.Uint32(b[4:]), ticks: 1e6}
	for b = b[8:]; len(b) >= 4; {
		code, n := f.order.Uint16(b), int(f.order.Uint16(b[2:]))
		if code == optEnd {
			break
		}
		if n > len(b)-4 {
			return damagef("an interface's option %d of length %d where %d are left", code, n, len(b)-4)
		}
		if err := f.option(&i, code, b[4:4+n]); err != nil {
			return err
		}
		b = b[min(len(b), 4+(n+3)&^3):]
	}
	f.ifs = append(f.ifs, i)
	return nil
}

// option takes what an option says about times.
func (f *pcapng) option(i *ifDesc, code uint16, v []byte) error {
	switch {
	case code == optTsresol && len(v) == 1:
		if i.ticks = resolution(v[0]); i.ticks == 0 {
			return damagef("an interface's time resolution of %#02x", v[0])
		}
	case code == optTsoffset && len(v) == 8:
		i.shift = int64(f.order.Uint64(v))
	}
	return nil
}

// resolution returns the ticks in a second that an if_tsresol stands for: a power
// of ten or, with its first bit, of two. It is 0 if they do not fit 64 bits.
func resolution(v byte) uint64 {
	base, exponent := uint64(10), v
	if v&0x80 != 0 {
		base, exponent = 2, v&0x7f
	}
	ticks := uint64(1)
	for range exponent {
		over, low := bits.Mul64(ticks, base)
		if over != 0 {
			return 0
		}
		ticks = low
	}
	return ticks
}

// time returns the time of a packet from its ticks.
func (i *ifDesc) time(t uint64) time.Time {
	hi, lo := bits.Mul64(t%i.ticks, 1e9)
	nsec, _ := bits.Div64(hi, lo, i.ticks)
	return time.Unix(int64(t/i.ticks)+i.shift, int64(nsec)).UTC()
}
