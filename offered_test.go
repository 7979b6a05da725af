package iwarp_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/rdmap"
)

// An offer is memory as a peer may reach it: by a window, or by an MR that is registered by
// requests.
type offer struct {
	window *iwarp.MW
	mr     *iwarp.MR
	stag   uint32
	base   uint64
	at, n  int // in the owner's memory; n is 0 while nothing is offered
	rights iwarp.Access
	past   []iwarp.Remote // as what it was offered before
}

// An owner offers parts of its memory to a peer, in random order, beside a model of the memory.
type owner struct {
	end    *rig.End
	peer   *rig.End
	rand   *rand.Rand
	memory []byte
	whole  *iwarp.MR
	offers []*offer
	want   []byte
	next   uint8    // key
	under  [][2]int // ranges of Writes that may be under way
}

const ownerMemory = 5000

func newOwner(t *testing.T, e, peer *rig.End, seed uint64) *owner {
	o := &owner{end: e, peer: peer, rand: rand.New(rand.NewPCG(seed, 0)), memory: rig.Pattern(ownerMemory, 3),
		want: rig.Pattern(ownerMemory, 3)}
	var err error
	o.whole, err = e.PD.Register(o.memory, iwarp.LocalWrite)
	rig.Must(t, err)
	for range 3 {
		o.offers = append(o.offers, &offer{window: allocMW(e, iwarp.MWType2)}, &offer{mr: allocFast(e, 3, ownerMemory)})
	}
	return o
}

// offer posts what offers a random part of the memory anew.
func (o *owner) offer(f *offer) {
	f.at = o.rand.IntN(ownerMemory - 1)
	f.n = 1 + o.rand.IntN(min(ownerMemory-f.at, 3000))
	f.base = []uint64{0, 1 << 40, uint64(f.at)}[o.rand.IntN(3)]
	f.rights = []iwarp.Access{iwarp.RemoteWrite, iwarp.RemoteRead, iwarp.RemoteRead | iwarp.RemoteWrite}[o.rand.IntN(3)]
	o.next++
	wr := iwarp.SendWR{ID: 70, Fence: o.rand.IntN(2) == 0}
	if f.window != nil {
		f.stag = f.window.STagWithKey(o.next)
		wr.Op, wr.Window = iwarp.OpBindMW, f.window
		wr.Bind = &iwarp.Binding{Memory: o.whole.Slice(f.at, f.n), Access: f.rights, Base: f.base, Key: o.next}
	} else {
		f.stag = f.mr.STagWithKey(o.next)
		cut := f.at + o.rand.IntN(f.n)
		wr.Op, wr.Target = iwarp.OpFastRegister, f.mr
		wr.Register = &iwarp.Registration{Memory: [][]byte{o.memory[f.at:cut], o.memory[cut : f.at+f.n]},
			Access: f.rights, Base: f.base, Key: o.next, Private: true}
	}
	o.end.MustPost(&wr)
	o.end.WantSent(wr.Op, 70, iwarp.StatusSuccess)
}

// withdraw ends an offer: by itself, or by a Send with Invalidate of the peer's.
func (o *owner) withdraw(f *offer) {
	f.past = append(f.past, iwarp.Remote{STag: f.stag, TO: f.base})
	f.n = 0
	if o.rand.IntN(2) == 0 {
		o.sync(f.stag)
		return
	}
	o.sync(0)
	wr := iwarp.SendWR{ID: 71, Op: iwarp.OpLocalInvalidate, Window: f.window, Target: f.mr, Fence: o.rand.IntN(2) == 0}
	o.end.MustPost(&wr)
	o.end.WantSent(wr.Op, 71, iwarp.StatusSuccess)
}

// sync has a Send of the peer's arrive: what it has written before is in place then.
func (o *owner) sync(invalidate uint32) {
	o.end.MustPostRecv(72)
	o.under = nil
	o.peer.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Invalidate: invalidate, Unsignaled: true})
	if wc := o.end.WantReceived(72, iwarp.StatusSuccess); wc.Invalidated != invalidate {
		o.end.T.Errorf("invalidated %#x, want %#x", wc.Invalidated, invalidate)
	}
}

// write has the peer write to a random part of an offer. RFC 5040, section 5.5, has no order between
// Writes that overlap.
func (o *owner) write(f *offer) {
	off := o.rand.IntN(f.n)
	p := rig.Pattern(1+o.rand.IntN(min(f.n-off, iwarp.MaxInline)), byte(o.rand.Uint32()))
	src, err := o.peer.PD.Register(p, 0)
	rig.Must(o.end.T, err)
	if slices.ContainsFunc(o.under, func(r [2]int) bool { return f.at+off < r[1] && r[0] < f.at+off+len(p) }) {
		o.sync(0)
	}
	o.under = append(o.under, [2]int{f.at + off, f.at + off + len(p)})
	o.peer.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, len(p))},
		Remote: iwarp.Remote{STag: f.stag, TO: f.base + uint64(off)}, Unsignaled: true})
	copy(o.want[f.at+off:], p)
}

// read has the peer read a random part of an offer.
func (o *owner) read(f *offer) {
	o.sync(0)
	off := o.rand.IntN(f.n)
	sink := o.peer.MR(1+o.rand.IntN(f.n-off), iwarp.LocalWrite)
	_, err := o.peer.Read(rig.Within(o.end.T), sink.Slice(0, sink.Len()),
		iwarp.Remote{STag: f.stag, TO: f.base + uint64(off)})
	if err != nil || !bytes.Equal(sink.Bytes(), o.want[f.at+off:f.at+off+sink.Len()]) {
		o.end.T.Fatalf("read %d bytes at %d of what is offered: %v", sink.Len(), off, err)
	}
}

// compare holds the memory against the model, once the peer's Writes are in place.
func (o *owner) compare() {
	o.end.T.Helper()
	got := make([]byte, ownerMemory)
	o.end.Look()
	if _, err := o.whole.ReadAt(got, 0); err != nil {
		o.end.T.Fatal(err)
	}
	for i := range got {
		if got[i] != o.want[i] {
			o.end.T.Fatalf("byte %d is %d, want %d", i, got[i], o.want[i])
		}
	}
}

// step does any one thing that the offers allow.
func (o *owner) step() {
	f := o.offers[o.rand.IntN(len(o.offers))]
	switch {
	case f.n == 0:
		o.offer(f)
	case o.rand.IntN(5) == 0:
		o.withdraw(f)
	case f.rights&iwarp.RemoteWrite != 0 && o.rand.IntN(4) > 0:
		o.write(f)
	case f.rights&iwarp.RemoteRead != 0:
		o.read(f)
	}
}

// trespass returns where the peer is to write, at last, what no offer allows, and what it is told.
func (o *owner) trespass() (at iwarp.Remote, code rdmap.Code) {
	o.sync(0)
	f := o.offers[o.rand.IntN(len(o.offers))]
	for f.n == 0 {
		o.offer(f)
	}
	switch way := o.rand.IntN(5); {
	case way == 0 && f.rights&iwarp.RemoteWrite == 0:
		return iwarp.Remote{STag: f.stag, TO: f.base}, rdmap.CodeDDPSTagNotAssociated
	case way == 1 && len(f.past) > 0:
		return f.past[o.rand.IntN(len(f.past))], rdmap.CodeDDPInvalidSTag
	case way == 2:
		o.withdraw(f)
		return f.past[len(f.past)-1], rdmap.CodeDDPInvalidSTag
	case way == 3:
		return iwarp.Remote{STag: o.whole.STag()}, rdmap.CodeDDPSTagNotAssociated
	case f.rights&iwarp.RemoteWrite == 0:
		return iwarp.Remote{STag: f.stag, TO: f.base + uint64(f.n)}, rdmap.CodeDDPSTagNotAssociated
	}
	return iwarp.Remote{STag: f.stag, TO: f.base + uint64(f.n) - 1}, rdmap.CodeDDPBaseOrBounds // two bytes
}

// TestNothingButTheOffered binds and registers, invalidates here and by the peer, and has the peer write
// and read, in random order, beside a model: no byte changes, or is read, that is not offered
// at the time, also where segments arrive in any order.
//
// Proves Z10, Z11, Z13.
func TestNothingButTheOffered(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		for seed := range uint64(4) {
			ini, res := endsSoon(s).Connect(t)
			o := newOwner(t, res, ini, seed)
			for range 60 {
				o.step()
			}
			at, code := o.trespass()
			o.sync(0)
			o.compare()
			t.Logf("seed %d: %v ends in %v", seed, at, code)
			refusedWrite(t, ini, res, at, code)
			o.compare()
		}
	})
}

// TestTargets posts invalidations of regions that the QP has no say over: each is refused when it is posted, and the
// connection goes on.
func TestTargets(t *testing.T) {
	ini, res := rig.Connect(t)
	apart, err := rig.NewPD(t, ini.RNIC).Register(make([]byte, 8), iwarp.LocalWrite)
	rig.Must(t, err)
	bound, err := ini.PD.RegisterOptions(make([]byte, 8), iwarp.MROptions{QP: rig.NewQP(t, ini.PD, iwarp.QPConfig{})})
	rig.Must(t, err)
	gone := ini.MR(8, iwarp.LocalWrite)
	rig.Must(t, gone.Deregister())
	for words, mr := range map[string]*iwarp.MR{
		"another RNIC":              res.MR(8, iwarp.LocalWrite),
		"another Protection Domain": apart,
		"bound to another QP":       bound,
		"was deregistered":          gone,
	} {
		rig.WantSaid(t, "Local Invalidate", ini.PostSend(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Target: mr}),
			iwarp.ErrInvalid, words)
		rig.WantSaid(t, "Read", ini.PostSend(&iwarp.SendWR{Op: iwarp.OpRead, Target: mr}), iwarp.ErrInvalid, words)
	}
	own, err := ini.PD.RegisterOptions(make([]byte, 8), iwarp.MROptions{QP: ini.QP})
	rig.Must(t, err)
	for id := range uint64(2) { // the second time it is invalid already (RDMA verbs 7)
		ini.MustPost(&iwarp.SendWR{ID: id, Op: iwarp.OpLocalInvalidate, Target: own})
		ini.WantSent(iwarp.OpLocalInvalidate, id, iwarp.StatusSuccess)
	}
	rig.Works(t, ini, res)
}

// TestReadTarget has a Read invalidate the region that it reads into, and another Read not.
func TestReadTarget(t *testing.T) {
	ini, res := rig.Connect(t)
	sink, src := ini.MR(8, iwarp.LocalWrite), res.MR(8, iwarp.RemoteRead)
	for id, target := range []*iwarp.MR{nil, sink} {
		ini.MustPost(&iwarp.SendWR{ID: uint64(id), Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 8)},
			Remote: src.Remote(0), Target: target})
		ini.WantSent(iwarp.OpRead, uint64(id), iwarp.StatusSuccess)
		if valid := target == nil; sink.Valid() != valid {
			t.Errorf("after Read %d the sink's STag is valid: %t", id, !valid)
		}
	}
	rig.Works(t, ini, res)
}
