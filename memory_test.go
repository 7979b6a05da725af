package iwarp_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/rdmap"
)

// A peer that reads slowly gets what the memory held before Deregister, and not an
// byte of what the program has put there afterwards; the connection ends over what
// was not yet built.
//
// Proves Z13, Z14.
func TestDeregisterWhileSending(t *testing.T) {
	t.Parallel()
	for op, to := range map[iwarp.Op]iwarp.Remote{iwarp.OpSend: {}, iwarp.OpWrite: {STag: 7}} {
		ini, p := rig.InitiateToPeer(t)
		p.Want(rdmap.OpWrite) // RTR
		const n = 16 << 20    // more than the sockets hold
		mr := ini.MR(n, 0)
		for i := range mr.Bytes() {
			mr.Bytes()[i] = 1
		}
		ini.MustPost(&iwarp.SendWR{Op: op, SGL: []iwarp.SGE{mr.Slice(0, n)}, Remote: to})
		rig.Must(t, mr.Deregister())
		for i := range mr.Bytes() { // the program's own again
			mr.Bytes()[i] = 2
		}
		got := 0
		for {
			f, err := p.Link.NextSegment(time.Time{})
			if err != nil {
				t.Fatalf("peer: %v", err)
			}
			if rdmap.OpcodeOf(&f.Header) == rdmap.OpTerminate {
				break
			}
			got += len(f.Payload)
			if i := bytes.IndexByte(f.Payload, 2); i >= 0 {
				t.Fatalf("%v: byte %d is one written after Deregister", op, got-len(f.Payload)+i)
			}
		}
		if wc := rig.Next(t, ini.SendCQ()); got == 0 || got >= n || wc.Status != iwarp.StatusLocalProtection {
			t.Errorf("%v: %d bytes of %d sent, completed with %v", op, got, n, wc.Status)
		}
	}
}

// The bytes of a segment with the largest FPDUs, which no path changes.
const (
	taggedSegment   = layout.MaxUnpadded - ddp.TaggedHeaderLen
	untaggedSegment = layout.MaxUnpadded - ddp.UntaggedHeaderLen
)

// wantWhole wants bytes that were read, in segments of a size, while Writes of one value each went on: where the value
// changes, a segment of the reader's or of the writer's begins.
func wantWhole(t *testing.T, what string, got []byte, segment int) {
	t.Helper()
	for i := 1; i < len(got); i++ {
		if got[i] != got[i-1] && i%segment != 0 && i%taggedSegment != 0 {
			t.Errorf("%s: %d and %d at %d, in the middle of a segment", what, got[i-1], got[i], i)
			return
		}
	}
}

// One peer Writes into the memory that others read and are sent from: none of them
// notices, and what they get are whole segments.
//
// Proves F04, Z02.
func TestSharedMemory(t *testing.T) {
	const n, rounds = 3 * 64 << 10, 40
	large := iwarp.QPConfig{FPDUs: iwarp.FPDUsLarge}
	ln := rig.Listen(t, iwarp.ListenConfig{RNIC: rig.NewRNIC(t, iwarp.RNICConfig{})})
	pd := rig.NewPD(t, ln.RNIC())
	shared, err := pd.Register(make([]byte, n), iwarp.RemoteWrite|iwarp.RemoteRead)
	rig.Must(t, err)
	pair := func() (there, here *rig.End) {
		here = &rig.End{T: t, RNIC: ln.RNIC(), PD: pd}
		accepted := here.Takes(ln, iwarp.AcceptConfig{PD: pd, QP: large})
		there = rig.NewEnd(t, iwarp.RNICConfig{})
		rig.Must(t, <-there.Dials(iwarp.Dialer{PD: there.PD, QP: large}, ln))
		rig.Must(t, <-accepted)
		return there, here
	}
	writer, _ := pair()
	reader, sender := pair()
	var wg sync.WaitGroup
	wg.Go(func() {
		src := writer.MR(n, 0)
		for i := range rounds * 4 {
			rig.Should(t, src.Update(func(b []byte) { fill(b, byte(i)) }))
			if _, err := writer.Write(rig.Within(t), src.Slice(0, n), shared.Remote(0)); err != nil {
				t.Error("Write:", err)
				return
			}
		}
	})
	wg.Go(func() {
		sink := reader.MR(n, iwarp.LocalWrite)
		for range rounds {
			if _, err := reader.Read(rig.Within(t), sink.Slice(0, n), shared.Remote(0)); err != nil {
				t.Error("Read:", err)
				return
			}
			rig.Should(t, sink.Update(func(b []byte) { wantWhole(t, "a Read", b, taggedSegment) }))
		}
	})
	wg.Go(func() {
		sink := reader.MR(n, iwarp.LocalWrite)
		for range rounds {
			reader.MustPostRecv(1, sink.Slice(0, n))
			if err := sender.Send(rig.Within(t), shared.Slice(0, n)); err != nil {
				t.Error("Send:", err)
				return
			}
			reader.WantReceived(1, iwarp.StatusSuccess)
			rig.Should(t, sink.Update(func(b []byte) { wantWhole(t, "a Send", b, untaggedSegment) }))
		}
	})
	wg.Wait()
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// A program polls the last word of what its peer Writes, with an atomic load: it then
// sees the whole Write, and what the peer wrote before. The race detector agrees,
// with both ends in one process.
func TestPolledMemory(t *testing.T) {
	ini, res := rig.Connect(t)
	const n = 40000
	src, dst := ini.Filled(n, 1, 0), res.MR(2*n, iwarp.RemoteWrite)
	for off := range 2 {
		ini.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, n)},
			Remote: dst.Remote(off * n), Unsignaled: true})
	}
	want := *(*uint64)(unsafe.Pointer(&src.Bytes()[n-8]))
	word := (*uint64)(unsafe.Pointer(&dst.Bytes()[2*n-8]))
	rig.Until(t, func() bool { return atomic.LoadUint64(word) == want }, "the Write")
	if !bytes.Equal(dst.Bytes(), append(rig.Pattern(n, 1), rig.Pattern(n, 1)...)) {
		t.Error("the last word was there, and not all of the Writes")
	}
	got := make([]byte, n)
	if m, err := dst.ReadAt(got, n); m != n || err != nil || !bytes.Equal(got, rig.Pattern(n, 1)) {
		t.Error(m, err)
	}
}

// ReadAt and WriteAt keep to the region, as io's interfaces want it, and end with it.
func TestMemoryAccess(t *testing.T) {
	var mr *iwarp.MR
	mr, err := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})).Register(make([]byte, 8), 0)
	rig.Must(t, err)
	if n, err := mr.WriteAt([]byte("abcd"), 4); n != 4 || err != nil {
		t.Error(n, err)
	}
	if b, err := io.ReadAll(io.NewSectionReader(mr, 2, 100)); string(b) != "\x00\x00abcd" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if n, err := mr.WriteAt(nil, 8); n != 0 || err != nil { // none fit at the end, too
		t.Error(n, err)
	}
	if n, err := mr.ReadAt(make([]byte, 4), 9); n != 0 || err != io.EOF {
		t.Error(n, err)
	}
	for _, off := range []int64{5, 8, 9, -1} {
		if n, err := mr.WriteAt([]byte("abcd"), off); n != 0 || !errors.Is(err, iwarp.ErrInvalid) {
			t.Error(off, n, err)
		}
	}
	if n, err := mr.ReadAt(make([]byte, 4), 6); n != 2 || err != io.EOF {
		t.Error(n, err)
	}
	if _, err := mr.ReadAt(nil, -1); !errors.Is(err, iwarp.ErrInvalid) {
		t.Error(err)
	}
	if err := mr.Update(func(b []byte) { b[0] = 'x' }); err != nil || mr.Bytes()[0] != 'x' {
		t.Error(err)
	}
	if err := mr.Update(nil); !errors.Is(err, iwarp.ErrInvalid) {
		t.Error(err)
	}
	rig.Should(t, mr.Deregister())
	_, read := mr.ReadAt(make([]byte, 1), 0)
	_, write := mr.WriteAt(make([]byte, 1), 0)
	for _, none := range [][]byte{nil, make([]byte, 1)} { // nothing to copy, as the offset is the end
		if n, err := mr.ReadAt(none, int64(mr.Len())); n != 0 || !errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("ReadAt of %d bytes at the end: %d, %v", len(none), n, err)
		}
	}
	if n, err := mr.WriteAt(nil, 0); n != 0 || !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("WriteAt of nothing: %d, %v", n, err)
	}
	for _, err := range []error{read, write, mr.Update(func([]byte) { t.Error("called") })} {
		if !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestFailedRegister: a registration that fails takes nothing of the RNIC's limits, and the Protection Domain can be
// closed.
func TestFailedRegister(t *testing.T) {
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{MRs: 1}}))
	if _, err := pd.RegisterOptions(make([]byte, 8),
		iwarp.MROptions{Base: 1<<64 - 4}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a region whose tagged offsets wrap: %v", err)
	}
	mr, err := pd.Register(make([]byte, 8), 0)
	rig.Must(t, err)
	if _, err := pd.Register(make([]byte, 8), 0); !errors.Is(err, iwarp.ErrLimit) {
		t.Errorf("a second region: %v", err)
	}
	rig.Should(t, mr.Deregister())
	rig.Should(t, pd.Close())
}

// TestRemoteAdd names a place further on, as a peer does that writes piece by piece.
func TestRemoteAdd(t *testing.T) {
	r := iwarp.Remote{STag: 7, TO: 1<<32 - 8}
	if got, want := r.Add(16), (iwarp.Remote{STag: 7, TO: 1<<32 + 8}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestReplaceMR has an MR take the place of another: a peer that knows the STag writes into the new memory as far as
// that allows, and need not be told.
func TestReplaceMR(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := endsSoon(s).Connect(t)
		old := res.MR(8, iwarp.RemoteWrite)
		at := old.Remote(0)
		writesTo(t, ini, res, "old", at, 0)
		now := replaces(res, old, 8, iwarp.RemoteWrite)
		if now.STag() != old.STag() || old.Valid() || !errors.Is(old.Deregister(), iwarp.ErrClosed) {
			t.Errorf("%#x after %#x, which is valid: %t", now.STag(), old.STag(), old.Valid())
		}
		writesTo(t, ini, res, "new", at, 0)
		if string(old.Bytes()[:3]) != "old" || string(now.Bytes()[:3]) != "new" {
			t.Errorf("%q, and %q after it", old.Bytes(), now.Bytes())
		}
		last := replaces(res, now, 8, iwarp.RemoteRead)
		refusedWrite(t, ini, res, at, rdmap.CodeDDPSTagNotAssociated)
		rig.Should(t, last.Deregister())
	})
}

// replaces registers bytes in the place of an MR.
func replaces(e *rig.End, old *iwarp.MR, n int, a iwarp.Access) *iwarp.MR {
	e.T.Helper()
	mr, err := e.PD.RegisterOptions(make([]byte, n), iwarp.MROptions{Access: a, Replace: old})
	rig.Must(e.T, err)
	return mr
}

// TestReplaceMRCounts: what takes the place of an MR counts as it does, in its Protection Domain and in the RNIC's
// limits.
func TestReplaceMRCounts(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{MRs: 2, Bytes: 24}})
	one, two := rig.NewPD(t, rnic), rig.NewPD(t, rnic)
	mr, err := one.Register(make([]byte, 8), 0)
	rig.Must(t, err)
	for range 3 { // nothing is left of those before
		mr, err = two.RegisterOptions(make([]byte, 16), iwarp.MROptions{Replace: mr})
		rig.Must(t, err)
		mr, err = one.RegisterOptions(make([]byte, 8), iwarp.MROptions{Replace: mr})
		rig.Must(t, err)
	}
	rig.Should(t, two.Close())
	if err := one.Close(); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a domain with the region closed: %v", err)
	}
	rig.Should(t, mr.Deregister())
	rig.Should(t, one.Close())
}

// TestReplaceMRMistakes leaves an MR as it is that cannot be replaced, and takes nothing of the limits.
func TestReplaceMRMistakes(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{MRs: 3}})
	pd, other := rig.NewPD(t, rnic), rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	register := func(pd *iwarp.PD) *iwarp.MR {
		mr, err := pd.Register(make([]byte, 8), iwarp.RemoteWrite)
		rig.Must(t, err)
		return mr
	}
	mr, gone, foreign := register(pd), register(pd), register(other)
	rig.Must(t, gone.Deregister())
	fast, err := pd.AllocMR(1, 8)
	rig.Must(t, err)
	w, err := pd.AllocMW(iwarp.MWType1)
	rig.Must(t, err)
	rig.Must(t, w.Bind(iwarp.Binding{Memory: mr.Slice(0, 8), Access: iwarp.RemoteRead}))
	for what, tt := range map[string]struct {
		o    iwarp.MROptions
		want error
	}{
		"of another RNIC":       {iwarp.MROptions{Replace: foreign}, iwarp.ErrInvalid},
		"an MR of AllocMR":      {iwarp.MROptions{Replace: fast}, iwarp.ErrInvalid},
		"was deregistered":      {iwarp.MROptions{Replace: gone}, iwarp.ErrClosed},
		"Windows are bound":     {iwarp.MROptions{Replace: mr}, iwarp.ErrBadState},
		"MROptions.Base":        {iwarp.MROptions{Replace: mr, Base: 1<<64 - 1}, iwarp.ErrInvalid},
		"access rights 0x80 do": {iwarp.MROptions{Replace: mr, Access: 0x80}, iwarp.ErrInvalid},
	} {
		if _, err := pd.RegisterOptions(make([]byte, 8), tt.o); !errors.Is(err, tt.want) || !rig.Contains(err, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !mr.Valid() || !foreign.Valid() {
		t.Error("the MR is not as it was")
	}
	rig.Should(t, w.Dealloc())
	rig.Should(t, mr.Deregister())
	rig.Should(t, fast.Deregister())
	rig.Should(t, pd.Close())
}

// TestReplaceInvalidated: a peer that invalidates the STag while another region takes it over invalidates the one or
// the other, and never neither.
func TestReplaceInvalidated(t *testing.T) {
	ini, res := rig.Connect(t)
	o := iwarp.MROptions{Access: iwarp.RemoteWrite | iwarp.RemoteInvalidate}
	o.Replace = res.MR(64, o.Access)
	replace := func() {
		next, err := res.PD.RegisterOptions(make([]byte, 64), o)
		rig.Must(t, err)
		o.Replace = next
	}
	for range 3000 {
		rig.Must(t, res.PostRecv(&iwarp.RecvWR{}))
		done, stag := make(chan struct{}), o.Replace.STag()
		go func() {
			defer close(done)
			replace()
		}()
		ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Invalidate: stag})
		wc := rig.Next(t, res.RecvCQ())
		<-done
		if wc.Status != iwarp.StatusSuccess {
			t.Fatal(wc.Err())
		}
		rig.Next(t, ini.SendCQ())
		replace() // which is valid, whatever the one before was
	}
}
