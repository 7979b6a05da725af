package rdmap

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// extension parses a vector of rfc7306.hex.
func extension(t testing.TB, name string) *ddp.Segment {
	t.Helper()
	s, err := ddp.Parse(testrig.Vectors(t, "rfc7306")[name])
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

var (
	vectorFetchAdd = AtomicRequest{AtomicFetchAdd, 0x11121314, 0x21222324, 0x3132333435363738, 0x4142434445464748,
		0x80000000, 0, math.MaxUint64}
	vectorCmpSwap = AtomicRequest{AtomicCmpSwap, 7, 0x79ca8f00, 0x555ea09ee4f0, 0x0102030405060708, 0xffffffff,
		0xa1a2a3a4a5a6a7a8, 0xffffffff00000000}
)

// Proves A01, A06, A07: the Atomic Request of RFC 7306, figure 4: nine fields in 52 bytes, big endian,
// after a DDP header for queue 1; the 28 reserved bits are ignored.
func TestAtomicRequest(t *testing.T) {
	for name, want := range map[string]AtomicRequest{"fetch-add": vectorFetchAdd, "cmp-swap": vectorCmpSwap,
		"reserved": vectorCmpSwap} {
		s := extension(t, name)
		wantCode(t, name, CheckSegment(s, 1), accepted)
		got, err := ParseAtomicRequest(s.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if b := got.Append(nil); name != "reserved" && !bytes.Equal(b, s.Payload) {
			t.Errorf("%s written back\n% x\nwant\n% x", name, b, s.Payload)
		}
		if h := OpAtomicRequest.Header(1); h.QN != s.QN || h.RsvdULP != s.RsvdULP || h.ULP != 0 {
			t.Errorf("%s: asks DDP for %v, want %v", name, h, s.Header)
		}
	}
}

// Proves A09, A20: of the sixteen codes of RFC 7306, figure 5, two are operations.
func TestAtomicOpsKnown(t *testing.T) {
	for op := range AtomicOp(16) {
		if op.Known() != (op == 0 || op == 2) {
			t.Errorf("%v is known: %t", op, op.Known())
		}
	}
}

// Proves A08: what a FetchAdd has no use for is sent as RFC 7306, section 5.2.1, wants it.
func TestAtomicRequestsMade(t *testing.T) {
	if diff := cmp.Diff(AtomicRequest{Op: AtomicFetchAdd, Data: 5, Mask: 0x80, CompareMask: math.MaxUint64},
		FetchAdd(5, 0x80)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(AtomicRequest{Op: AtomicCmpSwap, Compare: 1, CompareMask: 2, Data: 3, Mask: 4},
		CmpSwap(1, 2, 3, 4)); diff != "" {
		t.Error(diff)
	}
}

// Proves A01, A23: the Atomic Response of RFC 7306, figure 6: two fields in 12 bytes, on queue 3.
func TestAtomicResponse(t *testing.T) {
	s := extension(t, "atomic-response")
	wantCode(t, "response", CheckSegment(s, 1), accepted)
	got, err := ParseAtomicResponse(s.Payload)
	if want := (AtomicResponse{0x11121314, 0x5152535455565758}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if b := got.Append(nil); !bytes.Equal(b, s.Payload) {
		t.Errorf("written back % x, want % x", b, s.Payload)
	}
	if h := OpAtomicResponse.Header(1); h.QN != s.QN || h.RsvdULP != s.RsvdULP {
		t.Errorf("asks DDP for %v, want %v", h, s.Header)
	}
}

// Proves A01, A32: Immediate Data are 8 bytes on queue 0, with SE or without (RFC 7306, figure 7).
func TestImmediateData(t *testing.T) {
	for name, want := range map[string]uint64{"immediate": 0x6162636465666768, "immediate-se": 1} {
		s := extension(t, name)
		wantCode(t, name, CheckSegment(s, 1), accepted)
		got, err := ParseImmediateData(s.Payload)
		if err != nil || got != want || !bytes.Equal(AppendImmediateData(nil, got), s.Payload) {
			t.Errorf("%s: got %#x, %v, want %#x", name, got, err, want)
		}
		if h := OpcodeOf(&s.Header).Header(1); h.QN != s.QN || h.RsvdULP != s.RsvdULP {
			t.Errorf("asks DDP for %v, want %v", h, s.Header)
		}
	}
}

// Proves A05: a header that is cut short is an error, and none is read.
func TestExtensionsTooShort(t *testing.T) {
	refused := &Error{Code: CodeCatastrophicStream}
	for n := range AtomicRequestLen {
		if _, err := ParseAtomicRequest(make([]byte, n)); !errors.Is(err, refused) {
			t.Errorf("an Atomic Request of %d bytes: %v", n, err)
		}
		if _, err := ParseAtomicResponse(make([]byte, n)); n < AtomicResponseLen && !errors.Is(err, refused) {
			t.Errorf("an Atomic Response of %d bytes: %v", n, err)
		}
		if _, err := ParseImmediateData(make([]byte, n)); n < ImmediateDataLen && !errors.Is(err, refused) {
			t.Errorf("Immediate Data of %d bytes: %v", n, err)
		}
	}
}

// Proves A10, A11: what the operations make of a value: sums by fields, and replacements by masks.
func TestAtomicApply(t *testing.T) {
	const all = math.MaxUint64
	for _, tt := range []struct {
		name      string
		r         AtomicRequest
		old, want uint64
	}{
		{"one sum", FetchAdd(5, 0), 37, 42},
		{"one sum wraps", FetchAdd(2, 0), all, 1},
		{"one sum, its top bit in the mask", FetchAdd(2, 1<<63), all, 1},
		{"two fields, the lower wraps", FetchAdd(0x00000001_00000002, 0x80000000),
			0x00000005_ffffffff, 0x00000006_00000001},
		{"eight fields of eight bits", FetchAdd(0x01010101_010101ff, 0x80808080_80808080),
			0xff00ff00_ff00ff02, 0x00010001_00010001},
		{"64 fields of one bit: exclusive or", FetchAdd(0b1100, all), 0b1010, 0b0110},
		{"the upper field ends at bit 62", FetchAdd(1<<62, 1<<62), 1 << 62, 0},
		{"equal", CmpSwap(7, all, 9, all), 7, 9},
		{"not equal", CmpSwap(7, all, 9, all), 8, 8},
		{"equal in the bits compared", CmpSwap(0xf7, 0x0f, 9, all), 0x37, 9},
		{"only the bits of the Swap Mask", CmpSwap(0, 0, 0xffff, 0x0ff0), 0xa000000a, 0xa0000ffa},
		{"nothing compared: a swap", CmpSwap(1, 0, 9, all), 1234, 9},
		{"reserved", AtomicRequest{Op: 1, Data: 5, Mask: all}, 37, 37},
	} {
		if got := tt.r.Apply(tt.old); got != tt.want {
			t.Errorf("%s: %#x becomes %#x, want %#x", tt.name, tt.old, got, tt.want)
		}
	}
}

// Proves A10: FetchAdd is what the pseudocode of RFC 7306, section 5.1.1, says, bit by bit.
func TestFetchAddByBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		add, mask, old := rapid.Uint64().Draw(t, "add"), rapid.Uint64().Draw(t, "mask"), rapid.Uint64().Draw(t, "old")
		r := FetchAdd(add, mask)
		if got, want := r.Apply(old), addBits(old, add, mask); got != want {
			t.Fatalf("%#x, want %#x", got, want)
		}
	})
}

// addBits is the RFC's pseudocode.
func addBits(original, add, mask uint64) (value uint64) {
	carry := uint64(0)
	for bit := range 64 {
		location := uint64(1) << bit
		sum := carry + original&location>>bit + add&location>>bit
		carry = sum & 2 >> 1
		if sum&1 != 0 {
			value |= location
		}
		if mask&location != 0 {
			carry = 0
		}
	}
	return value
}

// Proves A11: CmpSwap is what the pseudocode of RFC 7306, section 5.1.2, says, on values that differ in few bits.
func TestCmpSwapByBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 0xff, 1 << 63, math.MaxUint64}))
		old, swap, mask, compareMask := some.Draw(t, "old"), some.Draw(t, "swap"), some.Draw(t, "mask"),
			some.Draw(t, "compare mask")
		compare := old ^ rapid.SampledFrom([]uint64{0, 0, 1, 0x80, 1 << 63}).Draw(t, "differs by")
		r, want := CmpSwap(compare, compareMask, swap, mask), uint64(0)
		same := true
		for bit := range 64 {
			same = same && (compareMask>>bit&1 == 0 || compare>>bit&1 == old>>bit&1)
		}
		for bit := range 64 {
			from := old
			if same && mask>>bit&1 == 1 {
				from = swap
			}
			want |= from & (1 << bit)
		}
		if got := r.Apply(old); got != want {
			t.Fatalf("%v makes %#x of %#x, want %#x", r, got, old, want)
		}
	})
}

// Proves A18, A22, A40: one depth is for Reads and Atomic Operations together, and each is answered in
// its turn; the Terminate for an Atomic Request has no RDMA header.
func TestIRRQOfAtomics(t *testing.T) {
	q := NewIRRQ(2)
	wantCode(t, "a Read", q.Push(message(t, "read-request")), accepted)
	wantCode(t, "an Atomic", q.Push(extension(t, "fetch-add")), accepted)
	wantCode(t, "one too many", q.Push(extension(t, "cmp-swap")), CodeDDPInvalidMSNRange)
	if op, h := q.FrontOther(); op != 0 || h != nil || q.Front() == nil || *q.Front() != captured {
		t.Error("the Read is not the oldest")
	}
	q.Pop()
	if op, h := q.FrontOther(); q.Front() != nil || op != OpAtomicRequest ||
		!bytes.Equal(h, vectorFetchAdd.Append(nil)) {
		t.Errorf("the oldest is %v and %v % x", q.Front(), op, h)
	}
	if diff := cmp.Diff(TerminateFor(CodeAccessRights, extension(t, "fetch-add")),
		q.Terminate(CodeAccessRights)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if term := q.Terminate(CodeAccessRights); len(term.DDPHeader) != 18 || !term.HasLength ||
		term.SegmentLength != 70 || term.RDMAPHeader != nil {
		t.Errorf("%v", term)
	}
	q.Pop()
	if op, h := q.FrontOther(); op != 0 || h != nil || q.Front() != nil {
		t.Error("nothing is left")
	}
	s := extension(t, "cmp-swap")
	s.Payload = s.Payload[:51]
	wantCode(t, "cut short", q.Push(s), CodeCatastrophicStream)
}

// Proves A19, A24, A26: a response belongs to the oldest request, and is of its kind.
func TestORQOfAtomics(t *testing.T) {
	q := NewORQ(2)
	check := func(id uint32) *Error { return q.CheckAnswer(OpAtomicResponse, id) }
	wantCode(t, "unasked", check(9), CodeUnexpectedOpcode)
	q.Push(Read{SinkSTag: 7, Size: 100, ID: 1})
	q.Push(Read{Response: OpAtomicResponse, Request: 9, ID: 2})
	if q.Push(Read{}) {
		t.Error("the ORD is for both")
	}
	wantCode(t, "the Read's is due", check(9), CodeUnexpectedOpcode)
	if _, ok := q.TakeAhead(response(0, 0, 1, true)); ok {
		t.Error("an Atomic Operation has no sink for a Read Response")
	}
	q.Pop()
	wantCode(t, "the Atomic's is due", q.Check(response(0, 0, 0, true)), CodeUnexpectedOpcode)
	wantCode(t, "another's", check(10), CodeCatastrophicStream)
	wantCode(t, "its own", check(9), accepted)
}

func TestExtensionsSay(t *testing.T) {
	for want, got := range map[string]string{
		"FetchAdd 0x4142434445464748 mask 0x80000000 at STag 0x21222324 TO 0x3132333435363738, request 286397204":                                 vectorFetchAdd.String(),
		"CmpSwap 0xa1a2a3a4a5a6a7a8 mask 0xffffffff00000000 to 0x102030405060708 mask 0xffffffff at STag 0x79ca8f00 TO 0x555ea09ee4f0, request 7": vectorCmpSwap.String(),
		"AOpCode 1 at STag 0x00000000 TO 0x0, request 0":                                                                                          AtomicRequest{Op: 1}.String(),
		"FetchAdd":           AtomicFetchAdd.String(),
		"CmpSwap":            AtomicCmpSwap.String(),
		"0x2a, of request 3": AtomicResponse{3, 42}.String(),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// FuzzExtensions: nothing panics, and what is read is written back but for the reserved bits.
func FuzzExtensions(f *testing.F) {
	for _, name := range []string{"fetch-add", "cmp-swap", "reserved", "atomic-response", "immediate"} {
		f.Add(extension(f, name).Payload)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := ParseAtomicRequest(b); err == nil {
			_, _ = r.String(), r.Apply(r.Compare)
			if got := r.Append(nil); !bytes.Equal(got[4:], b[4:AtomicRequestLen]) || got[3] != b[3]&15 {
				t.Fatalf("read % x, wrote % x", b, got)
			}
		}
		if r, err := ParseAtomicResponse(b); err == nil && !bytes.Equal(r.Append(nil), b[:AtomicResponseLen]) {
			t.Fatalf("read % x, wrote %v", b, r)
		}
		if v, err := ParseImmediateData(b); err == nil &&
			!bytes.Equal(AppendImmediateData(nil, v), b[:ImmediateDataLen]) {
			t.Fatalf("read % x, wrote %#x", b, v)
		}
	})
}
