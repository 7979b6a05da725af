package engine

import (
	"math"

	"github.com/goiwarp/iwarp/internal/memory"
)

// MaxSGE is how many scatter/gather elements one work request may have. RDMA verbs 8: at least 4.
const MaxSGE = 32

// fewSGE is how many of them lie within the request: it takes no memory for these.
const fewSGE = 4

// An SGE is a range of registered memory.
type SGE struct {
	Region *memory.Region
	Offset int         // bytes from the region's start
	Length int         // bytes
	Term   memory.Term // which registrations of the region are meant: Region.Term when it is posted
}

// An SGL is a list of scatter/gather elements. The zero value is empty.
type SGL struct {
	few  [fewSGE]SGE
	more []SGE // all of them, if they are more
	n    int
}

// Make makes an empty list one of n elements, and returns them, for the caller to fill.
func (l *SGL) Make(n int) []SGE {
	l.n = n
	if n > fewSGE {
		l.more = make([]SGE, n)
	}
	return l.Elements()
}

// Len returns how many elements there are.
func (l *SGL) Len() int { return l.n }

// Elements returns the elements.
func (l *SGL) Elements() []SGE {
	if l.n > fewSGE {
		return l.more
	}
	return l.few[:l.n]
}

// length adds up the list, in bytes; of lengths that no memory has it is the largest number at most.
func (l *SGL) length() (sum uint64) {
	for _, e := range l.Elements() {
		n := uint64(e.Length)
		if sum += n; sum < n {
			return math.MaxUint64
		}
	}
	return sum
}
