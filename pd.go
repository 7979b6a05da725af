package iwarp

import "fmt"

// A PD is a Protection Domain. It ties Queue Pairs to the memory that they, and their
// peers, may use: nothing of one domain is reached through a QP of another
// (RFC 5042, section 6.1.1).
type PD struct {
	rnic *RNIC
	num  uint32
	auto bool // it ends with its last user

	// guarded by rnic.mu
	users  int // QPs, SRQs and MRs
	closed bool
}

// AllocPD returns a new Protection Domain. It can fail only if the RNIC is closed
// or has a limit.
func (r *RNIC) AllocPD() (*PD, error) { return r.allocPD(false) }

func (r *RNIC) allocPD(auto bool) (*PD, error) {
	if err := r.ledger.take(share{resPD, 1}); err != nil {
		return nil, &OpError{Op: "allocate PD", Err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.ledger.give(share{resPD, 1})
		return nil, &OpError{Op: "allocate PD", Err: ErrClosed}
	}
	r.nextPD++
	return &PD{rnic: r, num: r.nextPD, auto: auto}, nil
}

// RNIC returns the RNIC that the domain belongs to.
func (pd *PD) RNIC() *RNIC { return pd.rnic }

// Close gives the domain back. It is refused while QPs, SRQs or MRs are in it.
func (pd *PD) Close() error {
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	if pd.users > 0 {
		return &OpError{Op: "close PD", Err: fmt.Errorf("%w: %d QPs, SRQs and MRs are in it", ErrBadState, pd.users)}
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
func (pd *PD) attach() error {
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	if pd.closed {
		return fmt.Errorf("the Protection Domain: %w", ErrClosed)
	}
	pd.users++
	return nil
}

// detach takes a user off. A domain that nobody asked for ends with its last.
func (pd *PD) detach() {
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	if pd.users--; pd.users == 0 && pd.auto {
		pd.close()
	}
}
