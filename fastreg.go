package iwarp

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/wording"
)

// A Registration says what an OpFastRegister registers in an MR that PD.AllocMR made.
type Registration struct {
	// Memory is registered as if it were one piece, in this order. It stays as it is until the
	// STag is invalid again; no copy is made. The list itself is copied.
	Memory [][]byte
	// Base is the tagged offset of the first octet: 0, or an address, or whatever peers are to
	// count from.
	Base uint64
	// Access is what may be done with the region.
	Access Access
	// Key is the lower eight bits of the STag: see MR.STagWithKey. Another key each time has
	// a peer that still uses an earlier registration fail.
	Key uint8
	// With Private, only the peer of the QP that carries out the request may use the region, on
	// its present connection; that peer may also invalidate it, as with MROptions.QP.
	Private bool
}

// AllocMR returns an MR without memory, whose STag is invalid: an OpFastRegister registers up to so
// many pieces of memory in it, and octets in all, and an invalidation ends that, as often as is
// wanted (RDMA verbs 7). A request that names the MR may be posted directly after the OpFastRegister.
// All octets count toward Limits.Octets until Deregister. A number under 1 is ErrInvalid.
func (pd *PD) AllocMR(pieces, octets int) (*MR, error) {
	mr, err := pd.allocMR(memory.Most{Pieces: pieces, Octets: octets})
	if err != nil {
		return nil, &OpError{Op: "allocate MR", Err: err}
	}
	return mr, nil
}

func (pd *PD) allocMR(most memory.Most) (*MR, error) {
	if most.Pieces < 1 || most.Octets < 1 {
		return nil, fmt.Errorf("%w: an MR for %s of memory and %s, which are to be at least 1", ErrInvalid, wording.Count(most.Pieces, "piece"), wording.Octets(most.Octets))
	}
	mr := &MR{pd: pd, buf: new([]byte), octets: most.Octets}
	return mr, mr.admit(func(t *memory.Table) (err error) {
		mr.region, err = t.Allocate(pd.num, most)
		return err
	})
}

// STagWithKey returns the Steering Tag that an OpFastRegister with a key gives the MR: the one to tell a peer while the
// OpFastRegister is being posted.
func (m *MR) STagWithKey(key uint8) uint32 { return withKey(m.STag(), key) }

// checkRegister judges an OpFastRegister, as far as that is settled before it is carried out.
func (w *SendWR) checkRegister(qp *QP) error {
	r := w.Register
	switch {
	case w.Op != OpFastRegister && r != nil:
		return fmt.Errorf("%w: Register, which is for OpFastRegister, on %v", ErrInvalid, w.Op)
	case w.Op != OpFastRegister:
		return nil
	case r == nil || w.Target == nil:
		return fmt.Errorf("%w: an OpFastRegister without a Target and a Register: name the MR, and what is registered", ErrInvalid)
	case !w.Target.region.Fast():
		return fmt.Errorf("%w: an OpFastRegister of an MR that PD.Register made; it is for those of PD.AllocMR", ErrInvalid)
	case r.Access&^allAccess != 0:
		return fmt.Errorf("%w: access rights %#x do not exist", ErrInvalid, uint8(r.Access&^allAccess))
	}
	d := memory.Domain{Table: qp.rnic.table, PD: qp.pd.num}
	g := r.engine(r.Memory)
	switch f := d.CheckRegister(w.Target.region, &g); f {
	case memory.None:
		return nil
	case memory.Wrap:
		return fmt.Errorf("%w: Registration.Base %#x with %s: %w", ErrInvalid, r.Base, wording.Octets(g.Octets()), memory.ErrWrap)
	case memory.TooLarge:
		return fmt.Errorf("%w: %s of memory with %s: %s (PD.AllocMR)", ErrInvalid, wording.Count(len(g.Memory), "piece"), wording.Octets(g.Octets()), f.Mistake())
	default:
		return fmt.Errorf("%w: %s", ErrInvalid, f)
	}
}

func (r *Registration) engine(pieces [][]byte) memory.Registration {
	return memory.Registration{Memory: pieces, Base: r.Base, Access: memory.Access(r.Access), Key: r.Key, Private: r.Private}
}

// localWork is scratch for what the request of a local operation refers to.
type localWork struct {
	bind     engine.Bind
	register engine.Register
	pieces   [fewPieces][]byte
}

// fewPieces is how many pieces of memory a registration may have that takes none to be posted.
const fewPieces = 4

// postLocal posts the request of an OpBindMW or OpFastRegister, with a copy of what that refers to, as queueSend
// makes one for the compiler. Nothing of it is kept. The caller holds qp.mu.
func (qp *QP) postLocal(work *engine.SendWork, w *SendWR) error {
	p := qp.posting()
	if p.local == nil {
		p.local = new(localWork)
	}
	l := p.local
	if w.Op == OpBindMW {
		l.bind = engine.Bind{Window: w.Window.window, Binding: w.Bind.engine()}
		work.Bind = &l.bind
	} else {
		l.register = engine.Register{Region: w.Target.region, Registration: w.Register.engine(append(l.pieces[:0], w.Register.Memory...))}
		work.Register = &l.register
	}
	err := qp.eng.PostSend(work)
	*l = localWork{}
	return err
}
