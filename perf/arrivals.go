package perf

// arrivals count the octets of payload that an end has received over its QPs, and those of them that it has placed
// ahead of others, which had not come by then.
type arrivals struct {
	Octets uint64 `json:"octets"`
	Ahead  uint64 `json:"ahead"`
}

// arrived returns what this end has received so far.
func (s *session) arrived() (a arrivals) {
	for _, l := range s.qps {
		if l.qp == nil {
			continue
		}
		stats := l.qp.Stats()
		a.Ahead += stats.Ahead.PlacedOctets
		for _, t := range stats.Received {
			a.Octets += t.Octets
		}
	}
	return a
}

// both adds what the other end has told with its last verdict.
func (s *session) both() arrivals {
	here := s.arrived()
	return arrivals{here.Octets + s.there.Octets, here.Ahead + s.there.Ahead}
}

// aheadSince is the part of what has arrived since an earlier count that was placed ahead of others.
func (s *session) aheadSince(before arrivals) float64 {
	now := s.both()
	if now.Octets == before.Octets {
		return 0
	}
	return float64(now.Ahead-before.Ahead) / float64(now.Octets-before.Octets)
}
