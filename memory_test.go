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
	"github.com/goiwarp/iwarp/mpa/layout"
	"github.com/goiwarp/iwarp/rdmap"
)

// A peer that reads slowly gets what the memory held before Deregister, and not an
// octet of what the program has put there afterwards; the connection ends over what
// was not yet built.
//
// Proves Z13, Z14.
func TestDeregisterWhileSending(t *testing.T) {
	t.Parallel()
	for op, to := range map[iwarp.Op]iwarp.Remote{iwarp.OpSend: {}, iwarp.OpWrite: {STag: 7}} {
		ini, p := initiateToPeer(t)
		p.want(rdmap.OpWrite) // RTR
		const n = 16 << 20    // more than the sockets hold
		mr := ini.mr(n, 0)
		for i := range mr.Bytes() {
			mr.Bytes()[i] = 1
		}
		ini.post(&iwarp.SendWR{Op: op, SGL: []iwarp.SGE{mr.Slice(0, n)}, Remote: to})
		must(t, mr.Deregister())
		for i := range mr.Bytes() { // the program's own again
			mr.Bytes()[i] = 2
		}
		got := 0
		for {
			f, err := p.link.NextSegment(time.Time{})
			if err != nil {
				t.Fatalf("peer: %v", err)
			}
			if rdmap.OpcodeOf(&f.Header) == rdmap.OpTerminate {
				break
			}
			got += len(f.Payload)
			if i := bytes.IndexByte(f.Payload, 2); i >= 0 {
				t.Fatalf("%v: octet %d is one written after Deregister", op, got-len(f.Payload)+i)
			}
		}
		if wc := next(t, ini.SendCQ()); got == 0 || got >= n || wc.Status != iwarp.StatusLocalProtection {
			t.Errorf("%v: %d octets of %d sent, completed with %v", op, got, n, wc.Status)
		}
	}
}

// The octets of a segment with the largest FPDUs, which no path changes.
const (
	taggedSegment   = layout.MaxUnpadded - ddp.TaggedHeaderLen
	untaggedSegment = layout.MaxUnpadded - ddp.UntaggedHeaderLen
)

// wantWhole wants octets that were read, in segments of a size, while Writes of one value each went on: where the value
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
	ln := listen(t, iwarp.ListenConfig{RNIC: newRNIC(t, iwarp.RNICConfig{})})
	pd := newPD(t, ln.RNIC())
	shared, err := pd.Register(make([]byte, n), iwarp.RemoteWrite|iwarp.RemoteRead)
	must(t, err)
	pair := func() (there, here *end) {
		here = &end{t: t, rnic: ln.RNIC(), pd: pd}
		accepted := here.takes(ln, iwarp.AcceptConfig{PD: pd, QP: large})
		there = newEnd(t, iwarp.RNICConfig{})
		must(t, <-there.dials(iwarp.Dialer{PD: there.pd, QP: large}, ln))
		must(t, <-accepted)
		return there, here
	}
	writer, _ := pair()
	reader, sender := pair()
	var wg sync.WaitGroup
	wg.Go(func() {
		src := writer.mr(n, 0)
		for i := range rounds * 4 {
			should(t, src.Update(func(b []byte) { fill(b, byte(i)) }))
			if _, err := writer.Write(within(t), src.Slice(0, n), shared.Remote(0)); err != nil {
				t.Error("Write:", err)
				return
			}
		}
	})
	wg.Go(func() {
		sink := reader.mr(n, iwarp.LocalWrite)
		for range rounds {
			if _, err := reader.Read(within(t), sink.Slice(0, n), shared.Remote(0)); err != nil {
				t.Error("Read:", err)
				return
			}
			should(t, sink.Update(func(b []byte) { wantWhole(t, "a Read", b, taggedSegment) }))
		}
	})
	wg.Go(func() {
		sink := reader.mr(n, iwarp.LocalWrite)
		for range rounds {
			reader.postRecv(1, sink.Slice(0, n))
			if err := sender.Send(within(t), shared.Slice(0, n)); err != nil {
				t.Error("Send:", err)
				return
			}
			reader.wantReceived(1, iwarp.StatusSuccess)
			should(t, sink.Update(func(b []byte) { wantWhole(t, "a Send", b, untaggedSegment) }))
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
	ini, res := connect(t)
	const n = 40000
	src, dst := ini.filled(n, 1, 0), res.mr(2*n, iwarp.RemoteWrite)
	for off := range 2 {
		ini.post(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, n)}, Remote: dst.Remote(off * n), Unsignaled: true})
	}
	want := *(*uint64)(unsafe.Pointer(&src.Bytes()[n-8]))
	word := (*uint64)(unsafe.Pointer(&dst.Bytes()[2*n-8]))
	until(t, func() bool { return atomic.LoadUint64(word) == want }, "the Write")
	if !bytes.Equal(dst.Bytes(), append(pattern(n, 1), pattern(n, 1)...)) {
		t.Error("the last word was there, and not all of the Writes")
	}
	got := make([]byte, n)
	if m, err := dst.ReadAt(got, n); m != n || err != nil || !bytes.Equal(got, pattern(n, 1)) {
		t.Error(m, err)
	}
}

// ReadAt and WriteAt keep to the region, as io's interfaces want it, and end with it.
func TestMemoryAccess(t *testing.T) {
	var mr *iwarp.MR
	mr, err := newPD(t, newRNIC(t, iwarp.RNICConfig{})).Register(make([]byte, 8), 0)
	must(t, err)
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
	should(t, mr.Deregister())
	_, read := mr.ReadAt(make([]byte, 1), 0)
	_, write := mr.WriteAt(make([]byte, 1), 0)
	for _, none := range [][]byte{nil, make([]byte, 1)} { // nothing to copy, as the offset is the end
		if n, err := mr.ReadAt(none, int64(mr.Len())); n != 0 || !errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("ReadAt of %d octets at the end: %d, %v", len(none), n, err)
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

// TestFailedRegister: a registration that fails takes nothing of the RNIC's limits, and the Protection Domain can be closed.
func TestFailedRegister(t *testing.T) {
	pd := newPD(t, newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{MRs: 1}}))
	if _, err := pd.RegisterOptions(make([]byte, 8), iwarp.MROptions{Base: 1<<64 - 4}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a region whose tagged offsets wrap: %v", err)
	}
	mr, err := pd.Register(make([]byte, 8), 0)
	must(t, err)
	if _, err := pd.Register(make([]byte, 8), 0); !errors.Is(err, iwarp.ErrLimit) {
		t.Errorf("a second region: %v", err)
	}
	should(t, mr.Deregister())
	should(t, pd.Close())
}

// TestRemoteAdd names a place further on, as a peer does that writes piece by piece.
func TestRemoteAdd(t *testing.T) {
	r := iwarp.Remote{STag: 7, TO: 1<<32 - 8}
	if got, want := r.Add(16), (iwarp.Remote{STag: 7, TO: 1<<32 + 8}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
