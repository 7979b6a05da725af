package serve

import "maps"

// A State is what a Server is doing.
type State int

// The states, in their order.
const (
	Starting State = iota
	Serving
	Draining
)

// Stats tell what a Server has done.
type Stats struct {
	State    State
	Services map[string]ServiceStats // by their names, all of them
	// Unknown, Off, Full and Declined count the requests that were rejected because no service knew them, because their
	// service is off, because there were too many connections, and because their service had another reason.
	Unknown, Off, Full, Declined uint64
}

// ServiceStats are those of one service.
type ServiceStats struct {
	Connections int // that there are
	// Ended, GaveWay and Failed count those that have ended: in order, because another needed their place, and
	// otherwise.
	Ended, GaveWay, Failed uint64
}

// Connections is how many there are of all services.
func (s *Stats) Connections() (n int) {
	for _, service := range s.Services {
		n += service.Connections
	}
	return n
}

// Stats returns how things stand.
func (s *Server) Stats() *Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Services = maps.Clone(s.stats.Services)
	return &stats
}

// State returns what the Server is doing.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats.State
}

func (s *Server) become(state State) {
	s.mu.Lock()
	s.stats.State = state
	s.mu.Unlock()
	if s.cfg.Watch != nil {
		s.cfg.Watch(state)
	}
}

// change changes what is counted of a service. The caller holds mu.
func (s *Server) change(service string, change func(*ServiceStats)) {
	c := s.stats.Services[service]
	change(&c)
	s.stats.Services[service] = c
}

// String is the state in a word.
func (s State) String() string {
	return [...]string{Starting: "starting", Serving: "serving", Draining: "draining"}[s]
}
