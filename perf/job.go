package perf

import "fmt"

// A job is one slice: so many messages of one size by one operation, one way
// of moving them. Both ends know it before it begins, so no message need say
// that it is the last.
type job struct {
	Transport Transport `json:"transport"`
	Op        Op        `json:"op"`
	Quantity  Quantity  `json:"quantity"`
	Size      int       `json:"size"`                // bytes a message
	Count     int       `json:"count"`               // messages on each lane
	Slots     int       `json:"slots"`               // buffers in each direction, and receives of what tells of itself
	Depth     int       `json:"depth"`               // messages under way at most
	Salt      int       `json:"salt"`                // of the pattern
	Both      bool      `json:"both,omitempty"`      // bandwidth in both directions at once
	Inline    bool      `json:"inline,omitempty"`    // copied with the work request
	PostList  int       `json:"post_list,omitempty"` // messages posted together, while bandwidth is measured
	CQMod     int       `json:"cq_mod,omitempty"`    // messages to a completion; 0 is a quarter of the depth
	Poll      bool      `json:"poll,omitempty"`      // for a while before one sleeps
	Calls     bool      `json:"calls,omitempty"`     // count system calls
	Apart     bool      `json:"apart,omitempty"`     // the two ends are in two processes
	AnyLap    bool      `json:"any_lap,omitempty"`   // Writes to one slot take effect in any order
	Corrupt   bool      `json:"corrupt,omitempty"`
}

// maxCount is how many messages a slice has at most. Multiplied by MaxSize it is far from
// the end of 64 bits.
const maxCount = 1<<31 - 1

// validate refuses a slice that the other end cannot have meant, or that the connections
// and buffers of a measurement are not made for. After it no arithmetic on the job
// overflows, and every buffer that it names is there.
func (j job) validate(o Options) error {
	switch {
	case j.Transport != IWARP && j.Transport != TCP:
		return j.bad("transport", j.Transport)
	case !j.Op.valid() || j.Op.size() != 0 && j.Size != j.Op.size():
		return j.bad("op", j.Op)
	case j.Quantity != Bandwidth && j.Quantity != Latency:
		return j.bad("quantity", j.Quantity)
	case j.Size < 1 || int64(j.Size) > o.ring():
		return j.bad("size", j.Size)
	case j.Count < 1 || j.Count > maxCount:
		return j.bad("count", j.Count)
	case j.Slots < 1 || j.Slots > o.maxSlots() || int64(j.Size) > o.ring()/int64(j.Slots):
		return j.bad("slots", j.Slots)
	case j.Depth < 1 || j.Depth > min(j.Slots, o.maxDepth()):
		return j.bad("depth", j.Depth)
	case j.Both && (j.Quantity == Latency || j.Slots < 2):
		return j.bad("both", j.Quantity)
	case j.PostList < 0 || j.PostList > MaxDepth:
		return j.bad("post_list", j.PostList)
	case j.CQMod < 0:
		return j.bad("cq_mod", j.CQMod)
	case j.Inline && j.Size > o.Inline:
		return j.bad("inline", j.Size)
	case j.Salt < 0 || j.Salt >= period:
		return j.bad("salt", j.Salt)
	}
	return nil
}

func (j job) bad(field string, value any) error {
	return fmt.Errorf("perf: bad slice, or one larger than was announced: %s %.40s", field, fmt.Sprint(value))
}

// lanes returns how many of the connections the slice uses.
func (j job) lanes(qps int) int {
	if j.Quantity == Latency {
		return 1
	}
	return qps
}

// messages returns how many messages the slice moves over all connections, in both
// directions of a ping-pong.
func (j job) messages(qps int) float64 {
	n := float64(j.Count) * float64(j.lanes(qps))
	if j.Quantity == Latency {
		n *= tripParts(j.Op)
	}
	if j.Both {
		n *= 2
	}
	return n
}

// onLane returns the job as lane i has it: with a pattern of its own.
func (j job) onLane(i int) job {
	j.Salt += i * 257
	return j
}

// receives says whether this side's sink is written to by the job.
func (j job) receives(s side) bool {
	switch {
	case j.Both:
		return true
	case j.Op.Fetches():
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
func (j job) signalPeriod() int {
	if j.CQMod > 0 {
		return min(j.CQMod, j.Depth)
	}
	return max(1, j.Depth/4)
}

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
