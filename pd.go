package iwarp

import (
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp/internal/admission"
)

// A PD is a Protection Domain. It ties Queue Pairs to the memory that they and their
// peers may use: a QP of one domain cannot reach anything of another (RFC 5042,
// section 6.1.1).
type PD struct {
	_    noCopy
	rnic *RNIC
	num  uint32
	auto bool // it was made for its users, and ends with the last of them

	memory account // guarded by the ledger

	// guarded by rnic.mu
	users  [numUsers]int
	closed bool
}

// A user is a kind of object that a Protection Domain has.
type user uint8

const (
	userQP user = iota
	userSRQ
	userMR
	userMW
	numUsers
)

// AllocPD returns a new Protection Domain. It fails only if the RNIC is closed or at
// its limit.
func (r *RNIC) AllocPD() (*PD, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	return r.allocPD(false)
}

func (r *RNIC) allocPD(auto bool) (*PD, error) {
	if err := r.ledger.reserve(share{resPD, 1}); err != nil {
		return nil, &OpError{Op: "allocate PD", Err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.ledger.release(share{resPD, 1})
		return nil, &OpError{Op: "allocate PD", Err: errRNICClosed}
	}
	r.nextPD++
	return &PD{rnic: r, num: r.nextPD, auto: auto}, nil
}

// RNIC returns the RNIC that the domain belongs to.
func (pd *PD) RNIC() *RNIC {
	if pd == nil {
		return nil
	}
	return pd.rnic
}

// noCopy has go vet report copies of what it is a field of.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Close frees the domain. It fails with ErrBadState while QPs, SRQs, MRs or MWs are in it, and with
// ErrClosed if it was closed before. A domain that Dial, Accept or the like have made for a QP
// ends by itself when nothing is in it any more: closing it then is no error.
func (pd *PD) Close() error {
	if err := pd.made(); err != nil {
		return err
	}
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	if pd.users != [numUsers]int{} {
		return &OpError{Op: "close PD", Err: fmt.Errorf(
			"%w: the Protection Domain is in use: close its QPs (%d) and SRQs "+
				"(%d), deregister its MRs (%d) and deallocate its MWs (%d) first",
			ErrBadState, pd.users[userQP], pd.users[userSRQ], pd.users[userMR], pd.users[userMW])}
	}
	if pd.closed && !pd.auto {
		return &OpError{Op: "close PD", Err: errPDClosed}
	}
	pd.close()
	return nil
}

// close is called with rnic.mu held.
func (pd *PD) close() {
	if !pd.closed {
		pd.closed = true
		pd.rnic.ledger.clear(&pd.memory)
		pd.rnic.ledger.release(share{resPD, 1})
	}
}

// attach counts a user.
func (pd *PD) attach(u user) error {
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	if err := pd.isOpen(); err != nil {
		return err
	}
	pd.users[u]++
	return nil
}

// checkOpen returns an error if the domain is closed, or its RNIC.
func (pd *PD) checkOpen() error {
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	return pd.isOpen()
}

// isOpen is checkOpen with rnic.mu held.
func (pd *PD) isOpen() error {
	switch {
	case pd.rnic.closed:
		return errRNICClosed
	case pd.closed:
		return errPDClosed
	}
	return nil
}

// detach counts one user less. A domain that was made for its users ends with the last of them.
func (pd *PD) detach(u user) {
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	if pd.users[u]--; pd.users == [numUsers]int{} && pd.auto {
		pd.close()
	}
}

// Reserve takes n bytes out of Limits.Bytes for the regions of the domain, before they are registered. They find room
// then, whatever other domains take meanwhile, until release is called or the domain ends. So a server reserves what
// a connection needs before it accepts that connection, and never has to cut it. Regions that are registered already
// count; what exceeds the reservation is taken as without one. Several reservations add up. A number below 0 is
// ErrInvalid. A *LimitError says that there is not so much.
//
// RFC 5042, section 6.4.1, has a resource manager hand out what users share.
func (pd *PD) Reserve(n int) (release func(), err error) {
	if err := pd.made(); err != nil {
		return nil, err
	}
	if n < 0 {
		err = fmt.Errorf("%w: %d bytes", ErrInvalid, n)
	} else {
		err = pd.reserve(n)
	}
	if err != nil {
		return nil, &OpError{Op: "reserve memory", Err: err}
	}
	return sync.OnceFunc(func() { _ = pd.reserve(-n) }), nil // a domain that has ended has given it back
}

func (pd *PD) reserve(n int) error {
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	if err := pd.isOpen(); err != nil {
		return err
	}
	return pd.rnic.ledger.charge(&pd.memory, n, 0, 0)
}

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

// An account is what a Protection Domain takes of Limits.Bytes: what it has reserved, or what is registered in it if
// that is more.
type account struct{ reserved, registered int }

func (a account) taken() int { return max(a.reserved, a.registered) }

// charge enters bytes that are reserved, or registered by a number of regions, or neither. Less than 0 of them are
// given back.
func (l *ledger) charge(a *account, reserved, registered, regions int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	after := account{a.reserved + reserved, a.registered + registered}
	if err := l.reserveLocked(share{resMR, regions}, share{resByte, after.taken() - a.taken()}); err != nil {
		return err
	}
	*a = after
	l.registered += registered
	return nil
}

// refund is charge for a region that has ended.
func (l *ledger) refund(a *account, n int) { _ = l.charge(a, 0, -n, -1) }

// clear gives back what a domain that ends has reserved.
func (l *ledger) clear(a *account) { _ = l.charge(a, -a.reserved, 0, 0) }

// registeredBytes returns how many bytes are registered.
func (l *ledger) registeredBytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.registered
}
