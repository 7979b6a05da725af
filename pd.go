package iwarp

import (
	"fmt"
	"sync"
)

// A PD is a Protection Domain. It ties Queue Pairs to the memory that they and their
// peers may use: a QP of one domain cannot reach anything of another (RFC 5042,
// section 6.1.1).
type PD struct {
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
func (pd *PD) RNIC() *RNIC { return pd.rnic }

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

// Reserve takes bytes out of Limits.Bytes for the regions of the domain, before they are registered. They find room
// then, whatever other domains take meanwhile, until release is called or the domain ends. So a server reserves what
// a connection needs before it accepts that connection, and never has to cut it. Regions that are registered already
// count; what exceeds the reservation is taken as without one. Several reservations add up. A number below 0 is
// ErrInvalid. A *LimitError says that there is not so much.
//
// RFC 5042, section 6.4.1, has a resource manager hand out what users share.
func (pd *PD) Reserve(octets int) (release func(), err error) {
	if err := pd.made(); err != nil {
		return nil, err
	}
	if octets < 0 {
		err = fmt.Errorf("%w: %d bytes", ErrInvalid, octets)
	} else {
		err = pd.reserve(octets)
	}
	if err != nil {
		return nil, &OpError{Op: "reserve memory", Err: err}
	}
	return sync.OnceFunc(func() { _ = pd.reserve(-octets) }), nil // a domain that has ended has given it back
}

func (pd *PD) reserve(octets int) error {
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	if err := pd.isOpen(); err != nil {
		return err
	}
	return pd.rnic.ledger.charge(&pd.memory, octets, 0, 0)
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
func (l *ledger) refund(a *account, octets int) { _ = l.charge(a, 0, -octets, -1) }

// clear gives back what a domain that ends has reserved.
func (l *ledger) clear(a *account) { _ = l.charge(a, -a.reserved, 0, 0) }

// bytes returns how many bytes are registered.
func (l *ledger) octets() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.registered
}
