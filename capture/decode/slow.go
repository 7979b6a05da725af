package decode

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/wording"
)

// A Read is slow if it took more than slowTimes the median of enoughReads or more, and more than slowTime.
const (
	enoughReads = 20
	slowTimes   = 100
	slowTime    = 10 * time.Millisecond
)

// slowest is the slowest Read of a direction.
type slowest struct {
	Read
	offset uint64 // of the Request
	msn    uint32
}

// acknowledged takes note of the packet in which the other end's TCP acknowledges all before an offset.
func (m *messages) acknowledged(offset uint64, p capture.Stamp) {
	for ; m.ackID < m.nextID; m.ackID++ {
		a := m.asked[m.ackID]
		if a == nil { // answered
			continue
		}
		if a.end > offset {
			return
		}
		a.acked = p
	}
}

// slowRead reports the slowest Read, if it is far slower than the others.
func (h *half) slowRead() {
	all, r := &h.publicHalf().Reads, &h.messages.slowest
	took, median := r.Latency(), time.Duration(all.Percentile(50))
	if all.Count < enoughReads || took <= slowTime || took <= slowTimes*median {
		return
	}
	told, advice := r.acknowledgment()
	h.c.report(findSlowRead, h.dir, r.offset, r.Request, fmt.Sprintf("the RDMA Read with MSN %d took %s, where the median of %d is %s: %s",
		r.msn, duration(uint64(took)), all.Count, duration(uint64(median)), told), advice)
}

// acknowledgment tells who was waited for, as far as TCP's acknowledgment of the Request shows it. Nobody was where the
// Response itself took most of the time.
func (r *slowest) acknowledgment() (told, advice string) {
	began := r.First.Time.Sub(r.Request.Time)
	switch {
	case began < r.Latency()/2:
		return fmt.Sprintf("its Response of %s began after %s", wording.Bytes(r.Size), duration(uint64(max(began, 0)))),
			"it is large, or a part of it came late: look for segments sent again"
	case r.Acked.Number == 0:
		return "it is not known when TCP acknowledged its Request", ""
	case r.Acked.Number >= r.First.Number:
		return "TCP acknowledged its Request no earlier than with the Response",
			"the Request came late, or the whole responder stood still: look for segments sent again"
	}
	after, then := r.Acked.Time.Sub(r.Request.Time), r.First.Time.Sub(r.Acked.Time)
	return fmt.Sprintf("TCP acknowledged its Request after %s (packet %d), and the Response began %s later",
			duration(uint64(after)), r.Acked.Number, duration(uint64(then))),
		wording.If(then > after, "the responder had the Request, and waited with its answer, unless the answer was lost on its way",
			"the Request came late: look for segments sent again, and at the network")
}
