package rdmap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/ddp"
)

// Proves P47: a Read Request above the IRD is refused, with 0x1203.
// Proves P45: the queue tells the limit in force.
func TestIRRQLimit(t *testing.T) {
	q := NewIRRQ(2)
	s := message(t, "read-request")
	for range 2 {
		wantCode(t, "within the IRD", q.Check(s), accepted)
		wantCode(t, "within the IRD", q.Push(s), accepted)
	}
	if q.Limit() != 2 || q.Len() != 2 {
		t.Error("takes other than two")
	}
	wantCode(t, "above the IRD", q.Check(s), CodeDDPInvalidMSNRange)
	wantCode(t, "above the IRD", q.Push(s), CodeDDPInvalidMSNRange)
	q.Pop()
	wantCode(t, "within the IRD again", q.Push(s), accepted)
	q.SetLimit(3)
	wantCode(t, "within a higher IRD", q.Push(s), accepted)
	wantCode(t, "above a higher IRD", q.Push(s), CodeDDPInvalidMSNRange)
	if q.Limit() != 3 {
		t.Error(q.Limit())
	}
	none := NewIRRQ(0)
	wantCode(t, "an IRD of zero", none.Push(s), CodeDDPInvalidMSNRange)
	s.Payload = s.Payload[:20]
	one := NewIRRQ(1)
	wantCode(t, "cut short", one.Push(s), CodeCatastrophicStream)
}

// An error before the first byte of the answer sends the request back as it came.
//
// Proves P17: as received when nothing was read yet.
// Proves P54: the DDP header and the segment's length are those of the request.
func TestIRRQTerminateAtOnce(t *testing.T) {
	q := NewIRRQ(1)
	s := message(t, "read-request")
	if err := q.Push(s); err != nil {
		t.Fatal(err)
	}
	want := TerminateFor(CodeAccessRights, s)
	if diff := cmp.Diff(want, q.Terminate(CodeAccessRights)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An error after 2048 bytes of the answer, the RFC's example.
//
// Proves P17: both TOs advanced by the bytes sent, size the bytes left, STags unchanged.
func TestIRRQTerminateMidway(t *testing.T) {
	q := NewIRRQ(1)
	if err := q.Push(message(t, "read-request")); err != nil {
		t.Fatal(err)
	}
	q.Front().Advance(1024)
	q.Front().Advance(1024)
	term := q.Terminate(CodeAccessRights)
	got, ok := term.ReadRequest()
	want := captured
	want.SinkTO, want.SrcTO, want.Size = want.SinkTO+2048, want.SrcTO+2048, want.Size-2048
	if !ok || got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if h, ok := term.Header(); !ok || h.MSN != 1 || h.QN != QNRead || term.SegmentLength != 46 {
		t.Errorf("%v, length %d", h, term.SegmentLength)
	}
}

// Proves P16: without headers where figure 10 has none, and where there is no request.
func TestIRRQTerminateParts(t *testing.T) {
	q := NewIRRQ(2)
	if term := q.Terminate(CodeAccessRights); len(term.Append(nil)) != 4 {
		t.Errorf("no request: %v", term)
	}
	if err := q.Push(message(t, "read-request")); err != nil {
		t.Fatal(err)
	}
	for code, length := range map[Code]int{CodeLocalCatastrophic: 4, CodeMPAConnectionLost: 4,
		CodeCatastrophicStream: 24, CodeAccessRights: 52} {
		term := q.Terminate(code)
		if got := len(term.Append(nil)); got != length {
			t.Errorf("%v: %d bytes, want %d", code, got, length)
		}
	}
}

// Any requests, against a plain slice.
//
// Proves P47: whatever comes and goes.
// Proves P23: requests come out in the order in which they went in.
func TestIRRQAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ird := rapid.IntRange(1, 9).Draw(t, "IRD")
		q := NewIRRQ(ird)
		var model []ReadRequest
		for i := range uint32(rapid.IntRange(1, 80).Draw(t, "steps")) {
			if rapid.Bool().Draw(t, "push") {
				r := ReadRequest{Size: i}
				if err := q.Push(requestSegment(r)); (err == nil) != (len(model) < ird) {
					t.Fatalf("%v with %d of %d", err, len(model), ird)
				} else if err == nil {
					model = append(model, r)
				}
				continue
			}
			if f := q.Front(); (f == nil) != (len(model) == 0) || f != nil && *f != model[0] {
				t.Fatalf("front %v of %v", f, model)
			}
			if r, ok := q.Pop(); ok != (len(model) > 0) || ok && r != model[0] {
				t.Fatalf("popped %v, %t of %v", r, ok, model)
			} else if ok {
				model = model[1:]
			}
		}
	})
}

// requestSegment is the segment of a Read Request.
func requestSegment(r ReadRequest) *ddp.Segment {
	h := OpReadRequest.Header(1)
	return &ddp.Segment{Header: h, Raw: h.Append(nil), Payload: r.Append(nil)}
}

// A high limit costs no memory before there is something to keep.
func TestRingGrowsWithUse(t *testing.T) {
	q := NewIRRQ(1 << 14)
	if q.reads.Cap() != 0 {
		t.Errorf("%d entries for nothing", q.reads.Cap())
	}
	for i := range uint32(5) {
		_ = q.Push(requestSegment(ReadRequest{Size: i}))
	}
	q.Pop()
	for i := range uint32(20) {
		_ = q.Push(requestSegment(ReadRequest{Size: 5 + i}))
	}
	for want := uint32(1); want < 25; want++ {
		if r, _ := q.Pop(); r.Size != want {
			t.Fatalf("got %d, want %d", r.Size, want)
		}
	}
	if q.reads.Cap() != 32 {
		t.Errorf("%d entries for 24", q.reads.Cap())
	}
}

// TestRequestsFit goes through the table of opcodes: an IRRQ has room for the header of each request, and each but the
// Read has a Request Identifier, which its response has too.
func TestRequestsFit(t *testing.T) {
	for op := range Opcode(Opcodes) {
		info, _ := op.Info()
		if info.Response == 0 || op == OpReadRequest {
			continue
		}
		if room := len(inboundRead{}.other); info.HeaderLen > room {
			t.Errorf("%v has a header of %d bytes, and an IRRQ room for %d", op, info.HeaderLen, room)
		}
		for _, op := range []Opcode{op, info.Response} {
			header := make([]byte, op.info().HeaderLen)
			if _, ok := op.RequestID(header); !ok {
				t.Errorf("%v has no Request Identifier", op)
			}
			if _, ok := op.RequestID(header[1:]); ok {
				t.Errorf("%v has one in a header that is cut short", op)
			}
		}
	}
}
