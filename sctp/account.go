package sctp

// window is how many DDP-SSNs from the first missing one on can be told from those before it: RFC 5043, section 10.
const window = 1 << 15

// An account tells which DDP-SSNs of a session have arrived. It takes 4 KiB where there is a gap, and nothing else.
//
// The numbers are those of the session from 0 on, of which a DDP-SSN has the low 16 bits.
type account struct {
	next    uint64 // the first that is missing
	highest uint64 // of those that have arrived
	ahead   int    // how many beyond next have arrived
	seen    *[window / 64]uint64
}

// enter takes note of a DDP-SSN and returns its number. It reports false if the message of that number has arrived
// already, or cannot have been sent yet. Nothing is allocated before that is known.
//
// RFC 5043, section 10: "The receiver MAY perform a validity check on received DDP-SSNs to ensure that any gap could
// be accounted for by unreceived Data Chunks. Implementations SHOULD NOT allocate resources on the assumption that
// DDP-SSNs are valid without first performing such a validity check."
func (a *account) enter(ssn uint16) (number uint64, ok bool) {
	distance := ssn - uint16(a.next)
	number = a.next + uint64(distance)
	switch {
	case distance >= window, a.has(number):
		return number, false
	case distance == 0:
		a.advance()
	default:
		a.mark(number)
	}
	a.highest = max(a.highest, number)
	return number, true
}

// has reports whether a number of the window has arrived.
func (a *account) has(number uint64) bool {
	word, bit := place(number)
	return a.seen != nil && a.seen[word]&bit != 0
}

func place(number uint64) (word int, bit uint64) {
	return int(number % window / 64), 1 << (number % 64)
}

func (a *account) mark(number uint64) {
	if a.seen == nil {
		a.seen = new([window / 64]uint64)
	}
	word, bit := place(number)
	a.seen[word] |= bit
	a.ahead++
}

// advance moves on to the next number that is missing.
func (a *account) advance() {
	for a.next++; a.has(a.next); a.next++ {
		word, bit := place(a.next)
		a.seen[word] &^= bit
		a.ahead--
	}
	if a.ahead == 0 {
		a.seen = nil
	}
}
