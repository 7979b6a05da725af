package rsockets

// A Receiver keeps account of a ring: what of it the peer may write, what has arrived and what was read, as positions
// in the stream of bytes. Position p is at offset p % size of the ring.
type Receiver struct {
	size, part             uint64
	read, arrived, offered uint64
	ends                   []uint64 // of the parts that were offered, and have not arrived as a whole
	pieces                 []uint64 // the ends of those that have arrived, and were not read as a whole
	credits                uint16
	// words that have come, those that are done with, and the limit that the peer was told
	received, settled, told uint16
	slots, slot             int // the peer's table, and its entry that is next
}

// MaxParts bounds how many parts a ring is cut into.
const MaxParts = 8

// newReceiver returns the account of a ring of which the first half was offered by the Hello. Parts of it have least
// bytes at least, but halves.
func newReceiver(size, least int, credits uint16, peer *Hello) Receiver {
	slots := int(min(peer.Entries, MaxParts))
	parts := 2 // the first offer is half of the ring
	for 2*parts <= slots && size/(2*parts) >= least {
		parts *= 2 // that divide it
	}
	return Receiver{
		size: uint64(size), part: uint64(size / parts), offered: uint64(size / 2), ends: []uint64{uint64(size / 2)},
		credits: credits, told: credits, slots: slots, slot: 1 % slots,
	}
}

// data takes note of a piece.
func (r *Receiver) data(n uint32) error {
	switch {
	case n == 0:
		return wrong("data", "a piece of no bytes")
	case r.received == r.told:
		return wrong("credit", "a piece beyond the %d credits", r.credits)
	case len(r.ends) == 0 || uint64(n) > r.ends[0]-r.arrived:
		return wrong("data", "a piece of length %d, where the peer was offered %d", n, r.room())
	}
	r.received++
	r.arrived += uint64(n)
	r.pieces = append(r.pieces, r.arrived)
	if r.arrived == r.ends[0] {
		r.ends = append(r.ends[:0], r.ends[1:]...)
	}
	return nil
}

func (r *Receiver) room() uint64 {
	if len(r.ends) == 0 {
		return 0
	}
	return r.ends[0] - r.arrived
}

// mapped takes note of a word of OpMap, which costs a credit and is done with at once.
func (r *Receiver) mapped() error {
	if r.received == r.told {
		return wrong("credit", "a map beyond the %d credits", r.credits)
	}
	r.received++
	r.settled++
	return nil
}

// Readable returns where in the ring the next bytes to be read lie, and how many there are in one stretch.
func (r *Receiver) Readable() (offset, n int) {
	at := r.read % r.size
	return int(at), int(min(r.arrived-r.read, r.size-at))
}

// Consume says that n bytes were read, of those that are readable.
func (r *Receiver) Consume(n int) {
	r.read += uint64(n)
	done := 0
	for done < len(r.pieces) && r.pieces[done] <= r.read {
		done++
	}
	r.pieces = append(r.pieces[:0], r.pieces[done:]...)
	r.settled += uint16(done)
}

// A Notice is what the peer is to be told: by Word and, if there is a part, by an entry in its table, which is written
// first.
type Notice struct {
	Word   Word
	Offset int // of the part in the ring
	Length int // its bytes; 0: there is none
	Slot   int // of the peer's table
}

// Due returns what the peer is to be told now, if anything is. What it returns is to be sent, before Due is called
// again.
func (r *Receiver) Due() (n Notice, due bool) {
	boundary := r.part - r.offered%r.part
	switch {
	case len(r.ends) < r.slots && r.size-(r.offered-r.read) >= boundary:
		n.Offset, n.Length, n.Slot = int(r.offered%r.size), int(boundary), r.slot
		r.offered += boundary
		r.ends = append(r.ends, r.offered)
		r.slot = (r.slot + 1) % r.slots
	case r.settled-(r.told-r.credits) < max(r.credits/2, 1):
		return Notice{}, false
	}
	r.told = r.settled + r.credits
	n.Word = NewWord(OpCredit, uint32(r.told))
	return n, true
}
