package iwarp

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/memory"
)

// Deregister takes the region back. When it returns nothing changes or reads the
// memory any more: what is still on its way was copied before. Requests that name it
// and are not yet carried out end in error, and the connection with them. It fails with ErrBadState while Memory Windows
// are bound to the region, and with ErrClosed if it was called before.
func (m *MR) Deregister() error {
	if err := m.kept(m.pd.rnic.table.Revoke(m.region)); err != nil {
		return &OpError{Op: "deregister memory", Err: err}
	}
	m.discharge()
	return nil
}

// kept is the error of a region that cannot be taken back.
func (m *MR) kept(f memory.Fault) error {
	switch f {
	case memory.None:
		return nil
	case memory.HasWindows:
		return fmt.Errorf("%w: Memory Windows are bound to the region: invalidate or deallocate them first", ErrBadState)
	}
	return fmt.Errorf("STag %#08x: %w", m.STag(), errDeregistered)
}

// discharge is the other way round than admit.
func (m *MR) discharge() {
	m.pd.rnic.ledger.give(m.shares()...)
	m.pd.detach(userMR)
}

// replace registers the MR in the place of another.
func (m *MR) replace(old *MR, o memory.Options) error {
	switch {
	case old.pd.rnic != m.pd.rnic:
		return fmt.Errorf("%w: MROptions.Replace is an MR of another RNIC", ErrInvalid)
	case old.region.Fast():
		return fmt.Errorf("%w: MROptions.Replace is an MR of AllocMR, whose memory is replaced by an OpFastRegister", ErrInvalid)
	}
	err := m.admit(func(t *memory.Table) error {
		var f memory.Fault
		var err error
		if m.region, f, err = t.Succeed(old.region, *m.buf, o); err != nil {
			return m.wraps(err, o.Base)
		}
		return old.kept(f)
	})
	if err == nil {
		old.discharge()
	}
	return err
}
