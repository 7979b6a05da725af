package iwarp

import (
	"errors"
	"fmt"
	"sync"
)

// Limits bounds what all users of an RNIC together can take from it. Zero, or less, means no
// bound. A request that would exceed a bound fails with a *LimitError and changes
// nothing (RFC 5042, section 6.4.1).
type Limits struct {
	// PDs, QPs, CQs, SRQs, MRs and MWs bound how many of each exist. QPs also bounds the
	// buffers that peers can make us hold: RNICAttr.MaxHeld octets for each QP, and what
	// MaxHeld leaves out.
	PDs, QPs, CQs, SRQs, MRs, MWs int
	// CQEntries bounds the sum of the depths of all CQs.
	CQEntries int
	// WorkRequests bounds the sum of the depths of all Send, Receive and Shared
	// Receive Queues.
	WorkRequests int
	// Octets bounds how much memory can be registered.
	Octets int64
	// HeldOctets bounds what all connections over SCTP, or another SegmentStream, hold together of segments that came
	// ahead of others. Each counts 200 octets; those that have to wait as a whole, which are Read Requests, and Sends
	// that go to an SRQ or find no receive, also count their own octets. When the bound is exceeded, the address for
	// which most is held loses the connection that holds most; until that has ended, more than the bound is held. What
	// waits for receives because of QPConfig.Unready counts too, also over TCP: all of its octets, and 200 more for
	// each segment. A second bound of the same size is for the Stacks that are aware of MPA: for what all their
	// connections hold of what was shown ahead of order, with 200 octets for each FPDU that is placed. What has no
	// room is dropped, and placed when it comes again in order.
	HeldOctets int64
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
	return fmt.Sprintf("%v: %s: %d in use and %d more wanted, the limit is %d", ErrLimit, e.Resource, e.Used, e.Wanted, e.Limit)
}

// Unwrap returns ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// resource is a kind of thing that an RNIC hands out.
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
	resOctet
	numResources
)

var resourceNames = [numResources]string{
	"Protection Domains", "Queue Pairs", "Completion Queues", "Shared Receive Queues", "Memory Regions", "Memory Windows",
	"Completion Queue entries", "work request entries", "octets of registered memory",
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
}

func (l *ledger) init(m Limits) {
	l.limit = [numResources]int64{
		resPD: int64(m.PDs), resQP: int64(m.QPs), resCQ: int64(m.CQs), resSRQ: int64(m.SRQs), resMR: int64(m.MRs), resMW: int64(m.MWs),
		resCQEntry: int64(m.CQEntries), resWR: int64(m.WorkRequests), resOctet: m.Octets,
	}
}

// take records all shares as in use, or none of them. [Z01]
func (l *ledger) take(shares ...share) error {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// give records shares as free again.
func (l *ledger) give(shares ...share) {
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
