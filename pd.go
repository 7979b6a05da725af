package iwarp

import "fmt"

// A PD is a Protection Domain. It ties Queue Pairs to the memory that they and their
// peers may use: a QP of one domain cannot reach anything of another (RFC 5042,
// section 6.1.1).
type PD struct {
	rnic *RNIC
	num  uint32
	auto bool // it was made for its users, and ends with the last of them

	// guarded by rnic.mu
	users  [numUsers]int
	closed bool
}

// user is a kind of object that a Protection Domain has.
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
func (r *RNIC) AllocPD() (*PD, error) { return r.allocPD(false) }

func (r *RNIC) allocPD(auto bool) (*PD, error) {
	if err := r.ledger.take(share{resPD, 1}); err != nil {
		return nil, &OpError{Op: "allocate PD", Err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.ledger.give(share{resPD, 1})
		return nil, &OpError{Op: "allocate PD", Err: errRNICClosed}
	}
	r.nextPD++
	return &PD{rnic: r, num: r.nextPD, auto: auto}, nil
}

// RNIC returns the RNIC that the domain belongs to.
func (pd *PD) RNIC() *RNIC { return pd.rnic }

// Close frees the domain. It fails with ErrBadState while QPs, SRQs, MRs or MWs are in it, and with
// ErrClosed if it was closed before. A domain that Dial, Accept or the like have made for a QP
// ends by itself when nothing is in it any more: closing it then is no error.
func (pd *PD) Close() error {
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	if pd.users != [numUsers]int{} {
		return &OpError{Op: "close PD", Err: fmt.Errorf("%w: the Protection Domain is in use: close its QPs (%d) and SRQs (%d), deregister its MRs (%d) and deallocate its MWs (%d) first",
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
		pd.rnic.ledger.give(share{resPD, 1})
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

// detach counts a user less. A domain that was made for its users ends with the last of them.
func (pd *PD) detach(u user) {
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	if pd.users[u]--; pd.users == [numUsers]int{} && pd.auto {
		pd.close()
	}
}
