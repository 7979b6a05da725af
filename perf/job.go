package perf

// A job is one slice: so many messages of one size by one operation, one way
// of moving them. Both ends know it before it begins, so no message need say
// that it is the last.
type job struct {
	Transport Transport `json:"transport"`
	Op        Op        `json:"op"`
	Quantity  Quantity  `json:"quantity"`
	Size      int       `json:"size"`           // octets a message
	Count     int       `json:"count"`          // messages on each lane
	Slots     int       `json:"slots"`          // buffers in each direction
	Depth     int       `json:"depth"`          // messages under way at most
	Salt      int       `json:"salt"`           // of the pattern
	Poll      bool      `json:"poll,omitempty"` // completions busily rather than sleep until one comes
	Corrupt   bool      `json:"corrupt,omitempty"`
}

// lanes returns how many of the connections the slice uses.
func (j job) lanes(qps int) int {
	if j.Quantity == Latency {
		return 1
	}
	return qps
}

// onLane returns the job as lane i has it: with a pattern of its own.
func (j job) onLane(i int) job {
	j.Salt += i * 257
	return j
}

// receives says whether this side's sink is written to by the job.
func (j job) receives(s side) bool {
	switch {
	case j.Op == Read:
		return s == initiator
	case j.Quantity == Latency:
		return true
	default:
		return s == responder
	}
}

// creditGrain is how many messages a credit stands for.
func (j job) creditGrain() int { return max(1, j.Slots/4) }

// credits is how many credits the responder gives in all; the last says that
// everything has arrived.
func (j job) credits() int { return j.Count/j.creditGrain() + 1 }

// signalPeriod is after how many work requests one asks for a completion, as
// perftest's CQ moderation.
func (j job) signalPeriod() int { return max(1, j.Depth/4) }

// signaled says whether message i asks for a completion.
func (j job) signaled(i int) bool {
	return i+1 == j.Count || (i+1)%j.signalPeriod() == 0
}

// side is one of the two ends.
type side bool

const (
	initiator side = false
	responder side = true
)

func (s side) String() string {
	if s == responder {
		return "responder"
	}
	return "initiator"
}
