package capture

import "github.com/goiwarp/iwarp/internal/chunk"

// tsnWindow is how many DATA chunks of a direction are told apart from the first missing
// one on.
const tsnWindow = 1 << 16

// tsns tells which DATA chunks of a direction were captured. It takes 8 KiB where one is
// missing, and nothing else.
type tsns struct {
	started bool
	next    uint32                  // the first that is missing
	ahead   int                     // how many are known beyond it
	seen    *[tsnWindow / 64]uint64 // which they are
	lost    uint32                  // the last that was given up
	hasLost bool
}

// setFirst sets the first TSN, once.
func (t *tsns) setFirst(tsn uint32) {
	if !t.started {
		*t = tsns{started: true, next: tsn}
	}
}

// Before reports whether one TSN comes before another: RFC 9260, section 1.6.
func Before(a, b uint32) bool { return chunk.Before(a, b) }

// enter takes note of a TSN, and reports whether it is new. lost counts those that are
// given up, as they are too far behind it.
func (t *tsns) enter(tsn uint32) (fresh bool, lost uint64) {
	t.setFirst(tsn)
	if Before(tsn, t.next) || t.has(tsn) {
		return false, 0
	}
	if tsn-t.next >= tsnWindow {
		lost = t.giveUp(tsn - tsnWindow + 1)
	}
	if tsn == t.next {
		t.next++
		t.proceed()
		return true, lost
	}
	if t.seen == nil {
		t.seen = new([tsnWindow / 64]uint64)
	}
	word, bit := tsnPlace(tsn)
	t.seen[word] |= bit
	t.ahead++
	return true, lost
}

func tsnPlace(tsn uint32) (word int, bit uint64) {
	return int(tsn % tsnWindow / 64), 1 << (tsn % 64)
}

// has reports whether a TSN from next on is known.
func (t *tsns) has(tsn uint32) bool {
	word, bit := tsnPlace(tsn)
	return t.seen != nil && tsn-t.next < tsnWindow && t.seen[word]&bit != 0
}

// step passes over the next TSN, and reports whether it was captured.
func (t *tsns) step() (known bool) {
	if known = t.has(t.next); known {
		word, bit := tsnPlace(t.next)
		t.seen[word] &^= bit
		t.ahead--
	}
	t.next++
	return known
}

// proceed passes over what is known.
func (t *tsns) proceed() {
	for t.ahead > 0 && t.has(t.next) {
		t.step()
	}
	if t.ahead == 0 {
		t.seen = nil
	}
}

// giveUp waits for nothing before a TSN any more, and returns how many that were.
func (t *tsns) giveUp(to uint32) (lost uint64) {
	for Before(t.next, to) && t.ahead > 0 {
		if !t.step() {
			lost++
			t.lost, t.hasLost = t.next-1, true
		}
	}
	if Before(t.next, to) {
		lost += uint64(to - t.next)
		t.next, t.lost, t.hasLost = to, to-1, true
	}
	t.proceed()
	return lost
}

// complete reports whether nothing is missing from one TSN to another.
func (t *tsns) complete(from, to uint32) bool {
	return t.started && Before(to, t.next) && !(t.hasLost && !Before(t.lost, from))
}
