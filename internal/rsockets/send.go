package rsockets

// A Sender says where the next bytes go, and keeps account of the peer's credits. The zero value sends nothing.
type Sender struct {
	seq, limit uint16
	reserve    uint16
	entries    []Entry // of the peer's ring, in order; none is empty
}

// spare is how many of its peer's credits a Sender never uses: rdma-core has no receives for words that cost no
// credit, such as ours of OpCredit, but those that it posts for data.
const spare = 8

func newSender(peer *Hello) Sender {
	s := Sender{limit: peer.Credits, reserve: min(spare, peer.Credits/4)}
	s.offer(peer.Ring)
	return s
}

func (s *Sender) offer(e Entry) {
	if e.Length > 0 {
		s.entries = append(s.entries, e)
	}
}

// credited reports whether the peer has a receive for one more word.
func (s *Sender) credited() bool { return s.limit-s.seq > s.reserve }

// Ready reports whether a piece can be sent.
func (s *Sender) Ready() bool { return len(s.entries) > 0 && s.credited() }

// Next takes the place for the next piece, of at most so many bytes, and a credit. What it returns is to be written at
// once, and told of by the word of OpData that follows. A Length of 0 says that there is no place, or no credit:
// another word has to come first.
func (s *Sender) Next(most int) Entry {
	if !s.Ready() || most <= 0 {
		return Entry{}
	}
	s.seq++
	e := &s.entries[0]
	piece := e.splitFront(uint32(min(uint64(most), uint64(e.Length), MaxValue)))
	if e.Length == 0 {
		s.entries = append(s.entries[:0], s.entries[1:]...)
	}
	return piece
}
