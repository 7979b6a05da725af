package ulp

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
)

// A memo remembers the latest values by their keys.
type memo[K comparable, V any] struct {
	values map[K]memorized[V]
	order  []K // a ring
	oldest int
}

// A memorized is a value.
type memorized[V any] struct {
	value V
	taken bool
}

// put remembers a value. If there are most, it forgets the one that was put first.
func (m *memo[K, V]) put(key K, v V, most int) {
	if m.values == nil {
		m.values = map[K]memorized[V]{}
	}
	if _, known := m.values[key]; !known {
		if len(m.order) < most {
			m.order = append(m.order, key)
		} else {
			delete(m.values, m.order[m.oldest])
			m.order[m.oldest] = key
			m.oldest = (m.oldest + 1) % most
		}
	}
	m.values[key] = memorized[V]{value: v}
}

// len is how many values are remembered.
func (m *memo[K, V]) len() int { return len(m.order) }

func (m *memo[K, V]) get(key K) (v V, ok bool) {
	known, ok := m.values[key]
	return known.value, ok
}

// take is get, once for each put: where keys come again, a capture may lack the packet that would have put another value.
func (m *memo[K, V]) take(key K) (v V, ok bool) {
	known, ok := m.values[key]
	if !ok || known.taken {
		return v, false
	}
	m.values[key] = memorized[V]{known.value, true}
	return known.value, true
}

// A piece is memory that an end has told the other of.
type piece struct {
	to     uint64
	length uint64
	what   string  // it is for
	head   *[]byte // takes the first bytes that are written there, if it is not nil
}

// Memory is what each end has told the other of.
type memory struct {
	of [2]memo[uint32, []piece]
	// pieces and heads are how many there were, also those that are forgotten.
	pieces, heads int
}

// size is what is remembered, in bytes, about.
func (m *memory) size() int {
	stags := m.of[0].len() + m.of[1].len()
	most := maxPerSTag * stags
	return costSTag*stags + costPiece*min(m.pieces, most) + maxHead*min(m.heads, most)
}

// add takes note of memory of an end.
func (m *memory) add(end int, stag uint32, p piece) {
	if p.length == 0 {
		return
	}
	all, _ := m.of[end].get(stag)
	if len(all) >= maxPerSTag {
		all = all[1:]
	}
	m.of[end].put(stag, append(all, p), maxSTags)
	m.pieces++
}

// maxHead is how many bytes a piece's head takes.
const maxHead = 512

// access says what the memory is for that an end reads or writes.
func (m *memory) access(end int, a *Access) (line, int) {
	all, _ := m.of[1-end].get(a.STag)
	for i := len(all) - 1; i >= 0; i-- {
		p := &all[i]
		if a.TO < p.to || a.TO-p.to >= p.length {
			continue
		}
		if p.head != nil && !a.Read && a.TO == p.to {
			m.heads += wording.Bit(*p.head == nil)
			*p.head = append((*p.head)[:0], a.Data[:min(len(a.Data), maxHead)]...)
		}
		return line{text: fmt.Sprintf("%s STag %#08x: %s", accessWord(a), a.STag, p.what)}, agrees
	}
	return line{}, silent
}

func accessWord(a *Access) string {
	if a.Read {
		return "Read of"
	}
	return "Write to"
}
