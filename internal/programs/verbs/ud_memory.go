//go:build linux && (amd64 || arm64)

package verbs

import (
	"slices"

	"github.com/goiwarp/iwarp"
)

// place returns the region that an element names, and where in it, if it is of that Protection Domain and has that
// right; nil for an element without bytes.
func (d *Device) place(pd Handle, s *SGE, right uint32) (mr *iwarp.MR, offset int64, ok bool) {
	if s.Length == 0 {
		return nil, 0, true // "SGE of length 0: STag not validated"
	}
	m := d.mrs.find(s.LKey)
	if m == nil || m.pd != pd || m.access&right != right || s.Addr < m.base {
		return nil, 0, false
	}
	offset = int64(s.Addr - m.base)
	return m.mr, offset, offset >= 0
}

// gather appends what the elements of a request name.
func (d *Device) gather(b []byte, pd Handle, list []SGE) ([]byte, iwarp.Status) {
	for i := range list {
		mr, offset, ok := d.place(pd, &list[i], 0)
		if !ok {
			return b, iwarp.StatusLocalProtection
		}
		if mr == nil {
			continue
		}
		from, n := len(b), int(list[i].Length)
		b = slices.Grow(b, n)[:from+n]
		if _, err := mr.ReadAt(b[from:], offset); err != nil {
			return b, iwarp.StatusLocalProtection
		}
	}
	return b, iwarp.StatusSuccess
}

// scatter places two pieces, one after the other, where the elements of a receive say, which have room.
func (d *Device) scatter(pd Handle, list []SGE, first, second []byte) iwarp.Status {
	for i := range list {
		mr, offset, ok := d.place(pd, &list[i], accessLocalWrite)
		if !ok || mr != nil && int64(mr.Len())-offset < int64(list[i].Length) {
			return iwarp.StatusLocalProtection
		}
		room := int(list[i].Length)
		for _, p := range []*[]byte{&first, &second} {
			n := min(room, len(*p))
			if n == 0 {
				continue
			}
			if _, err := mr.WriteAt((*p)[:n], offset); err != nil {
				return iwarp.StatusLocalProtection
			}
			*p, room, offset = (*p)[n:], room-n, offset+int64(n)
		}
	}
	return iwarp.StatusSuccess
}

// total is the length of all elements.
func total(list []SGE) (n uint64) {
	for i := range list {
		n += uint64(list[i].Length)
	}
	return n
}
