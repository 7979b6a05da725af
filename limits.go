package iwarp

import (
	"errors"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp/internal/admission"
)

// Limits bounds what all users of an RNIC together can take from it. Zero, or less, means no
// bound. A request that would exceed a bound fails with a *LimitError and changes
// nothing (RFC 5042, section 6.4.1).
type Limits struct {
	// PDs, QPs, CQs, SRQs, MRs and MWs bound how many of each exist. QPs also bounds the
	// buffers that peers can make us hold: RNICAttr.MaxHeld bytes for each QP, and what
	// MaxHeld leaves out.
	PDs, QPs, CQs, SRQs, MRs, MWs int
	// CQEntries bounds the sum of the depths of all CQs.
	CQEntries int
	// WorkRequests bounds the sum of the depths of all Send, Receive and Shared
	// Receive Queues.
	WorkRequests int
	// Bytes bounds how much memory can be registered, or reserved by PD.Reserve.
	Bytes int64
	// HeldBytes bounds the bytes that all connections hold together of segments that cannot be delivered yet:
	//
	//   - Over SCTP, or another SegmentStream, segments that came ahead of others. Each counts 200 bytes. Read Requests,
	//     and Sends that go to an SRQ or find no receive, have to wait as a whole: they count their own bytes too.
	//   - What waits for receives because of QPConfig.RNR, also over TCP: its bytes, and 200 for each segment.
	//
	// To make room, the address that holds most loses the connection that holds most. Until that has ended, more than
	// the bound is held. If nobody holds more than the connection that needs room, that one ends.
	//
	// A second bound of the same size is for Stacks that are aware of MPA. It bounds what all their connections hold of
	// early segments, which TCP shows ahead of order: their bytes, and 200 for each FPDU that is placed. What has no
	// room is dropped, and placed when it comes again in order. No connection ends for that.
	HeldBytes int64
	// IRD bounds the queue of inbound RDMA Reads and Atomic Operations of each connection: both what the
	// consumer asks for and what the queue grows to when a peer asks for more.
	IRD int
}

// ErrLimit is wrapped by every *LimitError.
var ErrLimit = errors.New("limit of the RNIC reached")

// A LimitError names the limit of an RNIC that a request would have exceeded.
type LimitError struct {
	Resource            string
	Limit, Used, Wanted int64
}

// Error says how much is in use, if anything is, how much more was wanted, and what the limit is.
func (e *LimitError) Error() string {
	if e.Used == 0 {
		return fmt.Sprintf("%v: %s: %d wanted, the limit is %d", ErrLimit, e.Resource, e.Wanted, e.Limit)
	}
	return fmt.Sprintf("%v: %s: %d in use and %d more wanted, the limit is %d", ErrLimit, e.Resource, e.Used, e.Wanted,
		e.Limit)
}

// Unwrap returns ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// overLimit makes the errors of a quota for a resource.
func overLimit(resource string) admission.OverLimit {
	return func(limit, used, wanted int64) error {
		return &LimitError{Resource: resource, Limit: limit, Used: used, Wanted: wanted}
	}
}

// A resource is a kind of thing that an RNIC hands out.
type resource uint8

const (
	resPD resource = iota
	resQP
	resCQ
	resSRQ
	resMR
	resMW
	resCQEntry
	resWR
	resByte
	numResources
)

var resourceNames = [numResources]string{
	"Protection Domains", "Queue Pairs", "Completion Queues", "Shared Receive Queues",
	"Memory Regions", "Memory Windows",
	"Completion Queue entries", "work request entries", "bytes of registered memory",
}

// A share is an amount of a resource.
type share struct {
	of resource
	n  int
}

// A ledger says how much of each resource is in use, and how much may be.
type ledger struct {
	mu          sync.Mutex
	limit, used [numResources]int64
	registered  int // bytes; those that are only reserved are used, too
}

func (l *ledger) init(m Limits) {
	l.limit = [numResources]int64{
		resPD: int64(m.PDs), resQP: int64(m.QPs), resCQ: int64(m.CQs), resSRQ: int64(m.SRQs),
		resMR: int64(m.MRs), resMW: int64(m.MWs),
		resCQEntry: int64(m.CQEntries), resWR: int64(m.WorkRequests), resByte: m.Bytes,
	}
}

// reserve records all shares as in use, or none of them. [Z01]
func (l *ledger) reserve(shares ...share) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserveLocked(shares...)
}

// reserveLocked is reserve for a caller that has l.mu.
func (l *ledger) reserveLocked(shares ...share) error {
	for _, s := range shares {
		limit, used := l.limit[s.of], l.used[s.of]
		if limit > 0 && int64(s.n) > limit-used {
			return &LimitError{Resource: resourceNames[s.of], Limit: limit, Used: used, Wanted: int64(s.n)}
		}
	}
	for _, s := range shares {
		l.used[s.of] += int64(s.n)
	}
	return nil
}

// release records shares as free again.
func (l *ledger) release(shares ...share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range shares {
		l.used[s.of] -= int64(s.n)
	}
}

func (l *ledger) inUse(of resource) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.used[of])
}
