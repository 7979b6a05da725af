package rsockets

// peerMaps are what the peer has mapped, by the entries of our table. That one is not mapped any more is never told: it stays here until its entry is used
// again, and a newer one at the same offsets goes before it.
type peerMaps struct {
	maps  []Map
	since []uint64 // which of all that have come each is; 0: none
	came  uint64
}

func newPeerMaps(n int) peerMaps { return peerMaps{maps: make([]Map, n), since: make([]uint64, n)} }

// set has an entry hold what has just come.
func (p *peerMaps) set(i uint32, m Map) {
	p.came++
	p.maps[i], p.since[i] = m, p.came
}

// find is Endpoint.Find.
func (p *peerMaps) find(offset uint64, n int) (place Entry, found bool) {
	var since uint64
	for i := range p.maps {
		if at, has := p.maps[i].Find(offset, n); has && p.since[i] > since {
			place, found, since = at, true, p.since[i]
		}
	}
	for i := range p.maps {
		if newer := &p.maps[i]; p.since[i] > since && newer.Length > 0 && newer.Offset > offset {
			place.Length = uint32(min(uint64(place.Length), newer.Offset-offset))
		}
	}
	return place, found
}
