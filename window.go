package iwarp

import (
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/wording"
)

// MWType is the type of a Memory Window.
type MWType uint8

const (
	// MWType1 is a window that is open to the peers of all QPs of its Protection Domain. It is
	// bound by MW.Bind or an OpBindMW, whatever it is bound to already; a binding of no
	// bytes ends that.
	MWType1 MWType = 1
	// MWType2 is a window that belongs to the QP on which an OpBindMW has bound it, until its connection ends: only the
	// peer of that QP can use it, and may invalidate it. It can be bound only while it is not bound, and an
	// OpLocalInvalidate ends a binding. InfiniBand calls it type 2B.
	MWType2 MWType = 2
)

// windowAccess has the rights that a window can give.
const windowAccess = RemoteRead | RemoteWrite | RemoteAtomic

// An MW is a Memory Window: an STag for a part of an MR, with rights of its own. Binding it costs
// next to nothing. Peers that use it reach nothing else of the MR, which needs no remote
// rights itself (RDMA verbs 7). While a window is bound, its MR can be neither invalidated nor deregistered.
type MW struct {
	_      noCopy
	pd     *PD
	kind   MWType
	window *memory.Window
}

// A Binding says what a Memory Window stands for.
type Binding struct {
	// Memory is the part of an MR, of the window's Protection Domain. A window of MWType1 whose
	// Memory has no bytes is not bound to anything any more.
	Memory SGE
	// Access is what peers may do: RemoteRead, RemoteWrite, RemoteAtomic, several of them, or nothing, as InfiniBand
	// has it. The last two need an MR with LocalWrite. The MR's own remote rights do not count.
	Access Access
	// Base is the tagged offset of the first byte: 0, or an address, or whatever the peer is to
	// count from.
	Base uint64
	// Key is the lower eight bits of the STag: see MW.STagWithKey. Another key each time has
	// a peer that still uses an earlier binding fail.
	Key uint8
}

// AllocMW returns a Memory Window that is not bound. It fails if the domain or its RNIC is
// closed, or at its limit.
func (pd *PD) AllocMW(t MWType) (*MW, error) {
	if err := pd.made(); err != nil {
		return nil, err
	}
	mw, err := pd.allocMW(t)
	if err != nil {
		return nil, &OpError{Op: "allocate Memory Window", Err: err}
	}
	return mw, nil
}

func (pd *PD) allocMW(t MWType) (*MW, error) {
	if t != MWType1 && t != MWType2 {
		return nil, fmt.Errorf("%w: there is no Memory Window of type %d", ErrInvalid, t)
	}
	if err := pd.attach(userMW); err != nil {
		return nil, err
	}
	if err := pd.rnic.ledger.reserve(share{resMW, 1}); err != nil {
		pd.detach(userMW)
		return nil, err
	}
	w, err := pd.rnic.table.AllocateWindow(pd.num, t == MWType1)
	if err != nil {
		pd.rnic.ledger.release(share{resMW, 1})
		pd.detach(userMW)
		return nil, err
	}
	return &MW{pd: pd, kind: t, window: w}, nil
}

// STag returns the Steering Tag of the present binding, or of the last. The upper 24 bits stay
// the same for the window's life.
func (w *MW) STag() uint32 {
	if w == nil || w.window == nil {
		return 0
	}
	return w.window.STag()
}

// STagWithKey returns the Steering Tag that a binding with a key has: the one to tell a peer while the OpBindMW is
// being posted.
func (w *MW) STagWithKey(key uint8) uint32 { return withKey(w.STag(), key) }

func withKey(stag uint32, key uint8) uint32 { return stag&^0xff | uint32(key) }

// Valid reports whether the window is bound.
func (w *MW) Valid() bool {
	if w == nil || w.window == nil {
		return false
	}
	return w.window.Valid()
}

// Remote is what a peer needs to name the bytes from offset off of the window on, as it is bound now.
func (w *MW) Remote(off int) Remote {
	if w == nil || w.window == nil {
		return Remote{}
	}
	return Remote{STag: w.window.STag(), TO: w.window.Base() + uint64(off)}
}

// Bind binds a window of MWType1. When it returns, peers reach the new memory, and can no longer reach anything through
// an earlier binding; requests that were posted before may not be carried out yet. One of MWType2 is bound by an
// OpBindMW. The error is ErrInvalid for what cannot be bound, and ErrClosed after Dealloc.
func (w *MW) Bind(b Binding) error {
	if err := w.made(); err != nil {
		return err
	}
	if err := w.bind(&b); err != nil {
		return &OpError{Op: "bind Memory Window", Err: err}
	}
	return nil
}

func (w *MW) bind(b *Binding) error {
	if w.kind != MWType1 {
		return fmt.Errorf("%w: a Memory Window of type %d is bound by an OpBindMW", ErrInvalid, w.kind)
	}
	if err := b.check(w, w.pd); err != nil {
		return err
	}
	d := memory.Domain{Table: w.pd.rnic.table, PD: w.pd.num}
	switch f := d.Bind(w.window, b.engine()); f {
	case memory.None:
		return nil
	case memory.InvalidSTag:
		return errFreed
	default:
		return fmt.Errorf("%w: %s", ErrInvalid, b.Memory.mistake(f))
	}
}

// check judges a binding of a window by a queue of a Protection Domain, as far as that is settled
// before it is carried out.
func (b *Binding) check(w *MW, pd *PD) error {
	switch {
	case w.pd != pd:
		return fmt.Errorf("%w: a Memory Window of another Protection Domain than the QP", ErrInvalid)
	case b.Memory.Length == 0 && w.kind == MWType1:
		return nil
	case b.Memory.Length == 0:
		return fmt.Errorf("%w: a binding of no bytes; an OpLocalInvalidate ends that of a Memory Window of type 2",
			ErrInvalid)
	// RDMA verbs 7 want at least one right. That of none, with which programs of libibverbs close a window, opens
	// nothing to anybody.
	case b.Access&^windowAccess != 0:
		return fmt.Errorf("%w: a binding with access rights %#x, which are to be of RemoteRead, RemoteWrite and "+
			"RemoteAtomic", ErrInvalid, uint8(b.Access))
	case ddp.Wraps(b.Base, uint64(max(b.Memory.Length, 0))):
		return fmt.Errorf("%w: Binding.Base %#x with %s: %w", ErrInvalid, b.Base, wording.Bytes(b.Memory.Length),
			memory.ErrWrap)
	}
	return sgeValidator{pd: pd}.check(&b.Memory, b.Access&(RemoteWrite|RemoteAtomic) != 0)
}

func (b *Binding) engine() memory.Binding {
	m := memory.Binding{Offset: b.Memory.Offset, Length: b.Memory.Length, Base: b.Base, Access: memory.Access(b.Access),
		Key: b.Key}
	if b.Memory.MR != nil {
		m.Region = b.Memory.MR.region
	}
	return m
}

// Dealloc ends the window, whatever it is bound to. When it returns no peer reaches anything through it
// any more. The error is ErrClosed if it was called before.
func (w *MW) Dealloc() error {
	if err := w.made(); err != nil {
		return err
	}
	if !w.pd.rnic.table.Free(w.window) {
		return &OpError{Op: "deallocate Memory Window", Err: errFreed}
	}
	w.pd.rnic.ledger.release(share{resMW, 1})
	w.pd.detach(userMW)
	return nil
}

// checkWindow judges the window of an OpBindMW or OpLocalInvalidate.
func (w *SendWR) checkWindow(qp *QP) error {
	switch {
	case w.Op == OpBindMW && (w.Window == nil || w.Bind == nil):
		return fmt.Errorf("%w: an OpBindMW without a Window and a Bind: name what is bound, and to what", ErrInvalid)
	case w.Window == nil:
		return nil
	case w.Window.made() != nil:
		return w.Window.made()
	case w.Op == OpBindMW:
		return w.Bind.check(w.Window, qp.pd)
	case w.Window.kind == MWType1:
		return fmt.Errorf("%w: a Memory Window of type 1 to invalidate; a binding of no bytes ends that", ErrInvalid)
	case w.Window.pd != qp.pd:
		return fmt.Errorf("%w: the Memory Window to invalidate is of another Protection Domain than the QP", ErrInvalid)
	}
	return nil
}

// A Registration says what an OpFastRegister registers in an MR that PD.AllocMR made.
type Registration struct {
	// Memory is registered as if it were one piece, in this order. It stays as it is until the
	// STag is invalid again; no copy is made. The list itself is copied.
	Memory [][]byte
	// Base is the tagged offset of the first byte: 0, or an address, or whatever peers are to
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

// AllocMR returns an MR without memory, whose STag is invalid: an OpFastRegister registers up to that
// many pieces of memory in it, of n bytes in all, and an invalidation ends that, as often as is
// wanted (RDMA verbs 7). A request that names the MR may be posted directly after the OpFastRegister.
// All bytes count toward Limits.Bytes until Deregister. A number under 1 is ErrInvalid.
func (pd *PD) AllocMR(pieces, n int) (*MR, error) {
	if err := pd.made(); err != nil {
		return nil, err
	}
	mr, err := pd.allocMR(memory.Most{Pieces: pieces, Bytes: n})
	if err != nil {
		return nil, &OpError{Op: "allocate MR", Err: err}
	}
	return mr, nil
}

func (pd *PD) allocMR(most memory.Most) (*MR, error) {
	if most.Pieces < 1 || most.Bytes < 1 {
		return nil, fmt.Errorf("%w: an MR for %s of memory and %s, which are to be at least 1", ErrInvalid,
			wording.Count(most.Pieces, "piece"), wording.Bytes(most.Bytes))
	}
	mr := &MR{pd: pd, buf: new([]byte), bytes: most.Bytes}
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
	case w.Op != OpFastRegister:
		return nil
	case r == nil || w.Target == nil:
		return fmt.Errorf("%w: an OpFastRegister without a Target and a Register: name the MR, and what is registered",
			ErrInvalid)
	case !w.Target.region.Fast():
		return fmt.Errorf("%w: an OpFastRegister of an MR that PD.Register made; it is for those of PD.AllocMR",
			ErrInvalid)
	case r.Access&^allAccess != 0:
		return fmt.Errorf("%w: access rights %#x do not exist", ErrInvalid, uint8(r.Access&^allAccess))
	}
	d := memory.Domain{Table: qp.rnic.table, PD: qp.pd.num}
	g := r.engine(r.Memory)
	switch f := d.CheckRegister(w.Target.region, &g); f {
	case memory.None:
		return nil
	case memory.Wrap:
		return fmt.Errorf("%w: Registration.Base %#x with %s: %w", ErrInvalid, r.Base, wording.Bytes(g.Bytes()),
			memory.ErrWrap)
	case memory.TooLarge:
		return fmt.Errorf("%w: %s of memory with %s: %s (PD.AllocMR)",
			ErrInvalid, wording.Count(len(g.Memory), "piece"),
			wording.Bytes(g.Bytes()), f.Mistake())
	default:
		return fmt.Errorf("%w: %s", ErrInvalid, f)
	}
}

func (r *Registration) engine(pieces [][]byte) memory.Registration {
	return memory.Registration{Memory: pieces, Base: r.Base, Access: memory.Access(r.Access), Key: r.Key,
		Private: r.Private}
}

// localWork is memory for what the request of a local operation refers to.
type localWork struct {
	bind     engine.Bind
	register engine.Register
	pieces   [fewPieces][]byte
}

// fewPieces is how many pieces of memory a registration may have that takes none to be posted.
const fewPieces = 4

// translateLocal copies what the request of an OpBindMW or OpFastRegister refers to.
func (p *posting) translateLocal(w *SendWR, dst *engine.SendWork) {
	l := p.local
	if l == nil {
		l = new(localWork)
	}
	p.local, p.used = nil, l
	if w.Op == OpBindMW {
		l.bind = engine.Bind{Window: w.Window.window, Binding: w.Bind.engine()}
		dst.Bind = &l.bind
		return
	}
	pieces := append(l.pieces[:0], w.Register.Memory...)
	l.register = engine.Register{Region: w.Target.region, Registration: w.Register.engine(pieces)}
	dst.Register = &l.register
}
