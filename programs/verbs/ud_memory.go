//go:build linux && (amd64 || arm64)

package verbs

import (
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// octets returns the memory that an element names, if its region is of that Protection Domain, has that right and contains it. The caller
// holds d.copying, and gives nothing of it away.
func (d *Device) octets(pd Handle, s *SGE, right uint32) (b []byte, ok bool) {
	if s.Length == 0 {
		return nil, true // "SGE of length 0: STag not validated"
	}
	m := d.mrs.find(s.LKey)
	if m == nil || m.pd != pd || m.access&right != right || s.Addr < m.base {
		return nil, false
	}
	if offset := s.Addr - m.base; offset <= m.n && uint64(s.Length) <= m.n-offset {
		return unsafe.Slice((*byte)(unsafe.Add(m.addr, offset)), s.Length), true
	}
	return nil, false
}

// gather appends what the elements of a request name.
func (d *Device) gather(b []byte, pd Handle, list []SGE) ([]byte, iwarp.Status) {
	d.copying.RLock()
	defer d.copying.RUnlock()
	for i := range list {
		from, ok := d.octets(pd, &list[i], 0)
		if !ok {
			return b, iwarp.StatusLocalProtection
		}
		b = append(b, from...)
	}
	return b, iwarp.StatusSuccess
}

// scatter places two pieces, one after the other, where the elements of a receive say, which have room.
func (d *Device) scatter(pd Handle, list []SGE, first, second []byte) iwarp.Status {
	d.copying.RLock()
	defer d.copying.RUnlock()
	for i := range list {
		to, ok := d.octets(pd, &list[i], accessLocalWrite)
		if !ok {
			return iwarp.StatusLocalProtection
		}
		n := copy(to, first)
		first = first[n:]
		second = second[copy(to[n:], second):]
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
