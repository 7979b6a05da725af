package rsockets

// An Endpoint is one end's account of a connection.
type Endpoint struct {
	Sender
	Receiver
	Ending
	ours, peer Hello
	entry      int // the one of our table that the peer writes next
	theirs     peerMaps
	mapsTold   int // words of OpMap that we have sent
}

// Memory is that of an end's own table. An iwarp.MR is one.
type Memory interface {
	// Update calls f with all of the memory, while nobody else reaches it.
	Update(f func([]byte)) error
}

// NewEndpoint begins the account, where both ends have said Hello. Of the ring of ring bytes, ours offers the first
// half; the bytes are a multiple of 2*MaxParts. The ring goes to the peer in halves or, if the peer's table has the
// entries, in smaller parts of part bytes at least. No piece is larger than a part, and each part costs a Notice.
func NewEndpoint(ours, peer Hello, ring, part int) *Endpoint {
	return &Endpoint{
		Sender: newSender(&peer), Receiver: newReceiver(ring, part, ours.Credits, &peer),
		ours: ours, peer: peer, entry: 1 % int(ours.Entries), theirs: newPeerMaps(ours.Maps),
	}
}

// Peer returns what the peer has said.
func (e *Endpoint) Peer() *Hello { return &e.peer }

// Deliver takes what a Send of the peer's has brought. The error is an *Error, or Memory's own; the connection is to
// end then.
func (e *Endpoint) Deliver(b []byte, table Memory) error {
	w, err := ParseWord(b, e.peer.Big)
	if err != nil {
		return err
	}
	switch w.Op() {
	case OpData:
		if e.PeerEnded() {
			return wrong("data", "a piece of length %d after the peer's end", w.Value())
		}
		return e.data(w.Value())
	case OpCredit:
		e.limit = uint16(w.Value())
		return e.look(table)
	case OpMap:
		return e.lookAtMap(w.Value(), table)
	case OpControl:
		return e.control(Control(w.Value()), !e.peer.CountsMaps)
	}
	return wrong("word", "%v", w)
}

// look takes what the peer has put into our table. An entry that was taken is cleared, so that the next that the peer
// writes is told from it.
func (e *Endpoint) look(table Memory) (err error) {
	n := int(e.ours.Entries)
	updated := table.Update(func(b []byte) {
		for {
			raw := b[e.entry*EntryLen:][:EntryLen]
			next := entryAt(raw, order(e.ours.Big))
			switch {
			case next.Length == 0:
				return
			case len(e.entries) == n:
				err = wrong("table", "more than %d entries under way", n)
				return
			case !next.ends():
				err = wrong("table", "length %d at %#x, which does not end", next.Length, next.TO)
				return
			}
			clear(raw)
			e.offer(next)
			e.entry = (e.entry + 1) % n
		}
	})
	if updated != nil {
		return updated
	}
	return err
}

func (e *Endpoint) lookAtMap(i uint32, table Memory) error {
	if uint64(i) >= uint64(len(e.theirs.maps)) {
		return wrong("map", "entry %d of a table of %d", i, len(e.theirs.maps))
	}
	if err := e.mapped(); err != nil {
		return err
	}
	var err error
	updated := table.Update(func(b []byte) {
		raw := b[int(e.ours.Entries)*EntryLen+int(i)*MapLen:]
		var m Map
		if m, err = ParseMap(raw[:MapLen], e.ours.Big); err == nil {
			e.theirs.set(i, m)
		}
	})
	if updated != nil {
		return updated
	}
	return err
}

// Find returns where in the peer's memory the n bytes lie that it has mapped at an offset: as many of them as one map
// has. Where several maps have a byte, it is in the one that came last.
func (e *Endpoint) Find(offset uint64, n int) (Entry, bool) { return e.theirs.find(offset, n) }

// MapRoom says whether a word of OpMap can be sent.
type MapRoom uint8

const (
	// MapFits: now.
	MapFits MapRoom = iota
	// MapWaits: when the peer has returned credits.
	MapWaits
	// MapNever: the peer, which does not return such credits, has none left for it.
	MapNever
)

// MapRoom says whether there is a credit for a word of OpMap. A peer that does not return such credits has few for it:
// a quarter.
func (e *Endpoint) MapRoom() MapRoom {
	switch {
	case !e.peer.CountsMaps && e.mapsTold >= int(e.peer.Credits/4):
		return MapNever
	case !e.credited():
		return MapWaits
	}
	return MapFits
}

// TellMap takes the credit for a word of OpMap, and reports whether there was one.
func (e *Endpoint) TellMap() bool {
	if e.MapRoom() != MapFits {
		return false
	}
	e.seq++
	e.mapsTold++
	return true
}
