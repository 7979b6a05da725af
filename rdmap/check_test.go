package rdmap

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// good is a segment of the opcode with which nothing is wrong.
func good(op Opcode, version uint8) *ddp.Segment {
	h := op.Header(version)
	h.Last = true
	info, _ := op.Info()
	n := info.HeaderLen
	if info.Payload {
		n = 5
	}
	return &ddp.Segment{Header: h, Raw: h.Append(nil), Payload: make([]byte, n)}
}

// wantCode wants a code, or no error where it is accepted.
const accepted Code = 0xffff

func wantCode(t *testing.T, what string, err *Error, want Code) {
	t.Helper()
	if (err == nil) != (want == accepted) || err != nil && err.Code != want {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// All opcodes against all versions, on streams of both.
//
// Proves A02, A41: messages of RFC 7306 are of version 1 only.
// Proves P05: another version than the stream's is 0x0205.
// Proves P07: an unknown opcode is 0x0206; it is looked at when the version is right.
// Proves P56: opcode and version are checked on every message, the Terminate included.
func TestCheckVersionAndOpcode(t *testing.T) {
	for stream := range uint8(2) {
		for version := range uint8(4) {
			for op := range Opcode(16) {
				info, known := op.Info()
				want := accepted
				switch {
				case info.QN == QNAtomic && stream == 0:
					want = CodeDDPInvalidQN // its queue is RFC 7306's
				case version != stream:
					want = CodeInvalidVersion
				case !known, op > OpTerminate && stream == 0:
					want = CodeUnexpectedOpcode
				}
				s := good(op, version)
				wantCode(t, s.Header.String(), CheckSegment(s, stream), want)
			}
		}
	}
}

// Proves P01: the T flag wrong for the opcode, or another of RDMAP's queues, is
// 0x0206; a queue that RDMAP has not is 0x1201.
func TestCheckModelAndQueue(t *testing.T) {
	for op := range OpAtomicResponse + 1 {
		s := good(op, 1)
		s.Tagged = !s.Tagged
		s.QN = QNSend
		wantCode(t, s.Header.String(), CheckSegment(s, 1), CodeUnexpectedOpcode)
		info, _ := op.Info()
		for _, qn := range []uint32{0, 1, 2, 3, 4, 1 << 31, 1<<32 - 1} {
			want := accepted
			switch {
			case info.Tagged:
			case qn > 3:
				want = CodeDDPInvalidQN
			case qn != info.QN:
				want = CodeUnexpectedOpcode
			}
			s := good(op, 1)
			s.QN = qn
			wantCode(t, s.Header.String(), CheckSegment(s, 1), want)
		}
	}
	s := good(OpSend, 0)
	s.QN = QNAtomic
	wantCode(t, "queue 3 on version 0", CheckSegment(s, 0), CodeDDPInvalidQN)
}

// Proves P09: messages with an RDMAP header have just that, and no ULP payload.
// Proves P10: a Read Request has 28 bytes.
// Proves P36: a Terminate shorter than its control field is an error.
func TestCheckForm(t *testing.T) {
	for op := range OpAtomicResponse + 1 {
		info, _ := op.Info()
		for n := range 70 {
			s := good(op, 1)
			s.Payload = make([]byte, n)
			want := CodeCatastrophicStream
			if info.Payload || n == info.HeaderLen || op == OpTerminate && n >= TerminateMinLen {
				want = accepted
			}
			wantCode(t, op.String(), CheckSegment(s, 1), want)
		}
		s := good(op, 1)
		s.Last = false
		want := CodeCatastrophicStream
		if info.Payload {
			want = accepted
		}
		wantCode(t, op.String()+" without L", CheckSegment(s, 1), want)
	}
}

// Messages as siw sends them pass.
//
// Proves P04: whatever the reserved bits are.
// Proves P08: and whatever the Invalidate STag field holds in a message which has none.
func TestCheckCaptured(t *testing.T) {
	for name := range testrig.Vectors(t, "messages") {
		s := message(t, name)
		wantCode(t, name, CheckSegment(s, 1), accepted)
		s.RsvdULP |= 0x30
		s.ULP = 0xffffffff
		wantCode(t, name+" with reserved bits", CheckSegment(s, 1), accepted)
		wantCode(t, name+" on version 0", CheckSegment(s, 0), CodeInvalidVersion)
	}
}

// Whatever the bytes are, a segment which passes is what its opcode says.
//
// Proves P56: nothing passes unchecked.
func TestCheckAnySegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.Uint8Max(1).Draw(t, "version")
		b := rapid.SliceOfN(rapid.Byte(), 18, 80).Draw(t, "bytes")
		b[1] = b[1]&0x3f | version<<6 // seldom right by chance
		copy(b[6:9], []byte{0, 0, 0})
		s, err := ddp.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if CheckSegment(&s, version) != nil {
			return
		}
		info, ok := OpcodeOf(&s.Header).Info()
		if !ok || s.Tagged != info.Tagged || !s.Tagged && s.QN != info.QN {
			t.Fatalf("%v passed", s.Header)
		}
		if !info.Payload && (!s.Last || len(s.Payload) < info.HeaderLen) {
			t.Fatalf("%v with %d bytes passed", s.Header, len(s.Payload))
		}
	})
}

// FuzzCheckSegment: a ULPDU of any bytes goes through all checks without a panic.
func FuzzCheckSegment(f *testing.F) {
	for _, b := range testrig.Vectors(f, "messages") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ddp.Parse(b)
		if err != nil {
			return
		}
		orq, irrq := NewORQ(1), NewIRRQ(1)
		orq.Push(Read{Size: 10})
		if err := CheckSegment(&s, 1); err != nil {
			term := TerminateFor(err.Code, &s)
			if back, err := ParseTerminate(term.Append(nil)); err != nil || back.Code != term.Code {
				t.Fatalf("%v: %v", term, err)
			}
			return
		}
		switch OpcodeOf(&s.Header) {
		case OpReadResponse:
			if orq.Check(&s) == nil {
				orq.Advance(&s)
			}
		case OpReadRequest:
			if err := irrq.Push(&s); err != nil {
				t.Fatal(err)
			}
		case OpTerminate:
			_, _ = ParseTerminate(s.Payload)
		}
	})
}

// Checking and reading good messages allocates nothing.
func TestAllocations(t *testing.T) {
	var all [][]byte
	for _, b := range testrig.Vectors(t, "messages") {
		all = append(all, b)
	}
	term := testrig.Vectors(t, "terminates")["read-request"]
	out := make([]byte, 0, 64)
	orq, irrq := NewORQ(4), NewIRRQ(4)
	allocs := testing.AllocsPerRun(100, func() {
		for _, b := range all {
			s, _ := ddp.Parse(b)
			if CheckSegment(&s, 1) != nil {
				t.Fatal("not taken")
			}
			switch OpcodeOf(&s.Header) {
			case OpReadRequest:
				r, _ := ParseReadRequest(s.Payload)
				out = r.Append(out[:0])
				_ = irrq.Push(&s)
				irrq.Pop()
			case OpReadResponse:
				orq.Push(Read{SinkSTag: s.STag, SinkTO: s.TO, Size: uint32(len(s.Payload))})
				s.Last = true
				if orq.Check(&s) != nil {
					t.Fatal("response not taken")
				}
				orq.Advance(&s)
			}
		}
		tm, err := ParseTerminate(term)
		if err != nil {
			t.Fatal(err)
		}
		out = tm.Append(out[:0])
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
