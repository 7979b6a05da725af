package mpa_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// startupFrames are siw's frames and what is in them.
var startupFrames = []struct {
	vector string
	fields mpa.StartupFields
	data   mpa.Enhanced
	line   string
}{
	{"siw-request", request(2, "00 01 00 01"), mpa.Enhanced{IRD: 1, ORD: 1},
		"MPA ID Req Frame S rev 2 pd 4: ird 1 ord 1"},
	{"siw-reply", reply(2, "00 01 00 01"), mpa.Enhanced{IRD: 1, ORD: 1}, "MPA ID Rep Frame S rev 2 pd 4: ird 1 ord 1"},
	{"siw-request-crc", withC(request(2, "00 01 00 01")), mpa.Enhanced{IRD: 1, ORD: 1},
		"MPA ID Req Frame C S rev 2 pd 4: ird 1 ord 1"},
	{"siw-reply-reject", withR(reply(2, "00 00 00 00")), mpa.Enhanced{},
		"MPA ID Rep Frame R S rev 2 pd 4: ird 0 ord 0"},
	{"siw-request-p2p", request(2, "80 01 c0 01"), mpa.Enhanced{A: true, C: true, D: true, IRD: 1, ORD: 1},
		"MPA ID Req Frame S rev 2 pd 4: A ird 1 ord 1 rtr write|read"},
	{"siw-reply-p2p", reply(2, "80 01 80 01"), mpa.Enhanced{A: true, C: true, IRD: 1, ORD: 1},
		"MPA ID Rep Frame S rev 2 pd 4: A ird 1 ord 1 rtr write"},
	{"siw-request-p2p-none", request(2, "80 01 00 01"), mpa.Enhanced{A: true, IRD: 1, ORD: 1},
		"MPA ID Req Frame S rev 2 pd 4: A ird 1 ord 1 rtr none"},
	{"siw-request-p2p-read", request(2, "80 01 40 01"), mpa.Enhanced{A: true, D: true, IRD: 1, ORD: 1},
		"MPA ID Req Frame S rev 2 pd 4: A ird 1 ord 1 rtr read"},
	{"siw-reply-p2p-read", reply(2, "80 01 40 01"), mpa.Enhanced{A: true, D: true, IRD: 1, ORD: 1},
		"MPA ID Rep Frame S rev 2 pd 4: A ird 1 ord 1 rtr read"},
	{"siw-request-v1", request(1, ""), mpa.Enhanced{}, "MPA ID Req Frame rev 1 pd 0"},
	{"siw-reply-v1", reply(1, ""), mpa.Enhanced{}, "MPA ID Rep Frame rev 1 pd 0"},
	{"siw-request-v0", request(0, ""), mpa.Enhanced{}, "MPA ID Req Frame rev 0 pd 0"},
}

// request and reply return a plain frame's fields; S is set from revision 2 on.
func request(rev uint8, privateData string) mpa.StartupFields {
	pd := testrig.Bytes(panicky{}, privateData)
	return mpa.StartupFields{Key: mpa.KeyRequest, S: rev >= 2, Rev: rev, PrivateData: pd}
}

func reply(rev uint8, privateData string) mpa.StartupFields {
	f := request(rev, privateData)
	f.Key = mpa.KeyReply
	return f
}

func withC(f mpa.StartupFields) mpa.StartupFields { f.C = true; return f }
func withM(f mpa.StartupFields) mpa.StartupFields { f.M = true; return f }
func withR(f mpa.StartupFields) mpa.StartupFields { f.R = true; return f }

// panicky is for vectors that stand in package variables.
type panicky struct{ testing.TB }

func (panicky) Helper()           {}
func (panicky) Fatal(args ...any) { panic(args) }

func frame(f mpa.StartupFields) []byte { return mpa.AppendStartup(nil, &f) }

// Proves Q01, E01: siw's frames, read and written.
func TestStartupFrames(t *testing.T) {
	for _, c := range startupFrames {
		b := vector(t, c.vector)
		f, err := mpa.ParseStartup(append(bytes.Clone(b), "first FPDU"...))
		if err != nil {
			t.Fatalf("%s: %v", c.vector, err)
		}
		if diff := cmp.Diff(c.fields, f.Fields(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", c.vector, diff)
		}
		if got, ok := f.Enhanced(); ok != c.fields.S || got != c.data {
			t.Errorf("%s: %+v, %v", c.vector, got, ok)
		}
		if got := mpa.AppendStartup(nil, &c.fields); !bytes.Equal(got, b) {
			t.Errorf("%s: wrote\n% x want\n% x", c.vector, got, b)
		}
		if f.String() != c.line {
			t.Errorf("%s: %q want %q", c.vector, f, c.line)
		}
	}
}

// Proves Q01, Q06: every bit of byte 16 has its place; values that are not legal can
// be written for probes.
func TestStartupBits(t *testing.T) {
	for _, c := range []struct {
		f    mpa.StartupFields
		want string // bytes 16 to 19
	}{
		{mpa.StartupFields{M: true}, "80 00 00 00"},
		{mpa.StartupFields{C: true}, "40 00 00 00"},
		{mpa.StartupFields{R: true}, "20 00 00 00"},
		{mpa.StartupFields{S: true}, "10 00 00 00"},
		{mpa.StartupFields{Res: 0xff, Rev: 255}, "0f ff 00 00"},
		{mpa.StartupFields{PDLength: 65535}, "00 00 ff ff"},
		{mpa.StartupFields{PDLength: -1, PrivateData: []byte("x")}, "00 00 00 00"},
		{mpa.StartupFields{PrivateData: make([]byte, 513)}, "00 00 02 01"},
	} {
		if got := mpa.AppendStartup(nil, &c.f)[16:20]; !bytes.Equal(got, testrig.Bytes(t, c.want)) {
			t.Errorf("%+v: % x want %s", c.f, got, c.want)
		}
	}
	long := frame(mpa.StartupFields{Key: "a key of more than 16 bytes"})
	if string(long[:16]) != "a key of more th" {
		t.Errorf("key %q", long[:16])
	}
	f, _ := mpa.ParseStartup(frame(mpa.StartupFields{Key: "\x16\x03", Res: 5}))
	if want := `\x16\x03` + strings.Repeat(`\x00`, 14) + " res 0x5 rev 0 pd 0"; f.String() != want {
		t.Errorf("%q want %q", f, want)
	}
}

// Proves Q08: the lengths of a frame are checked, and nothing else of it.
func TestParseStartupShort(t *testing.T) {
	b := frame(mpa.StartupFields{Key: mpa.KeyRequest, PrivateData: []byte("abc")})
	for n := range b {
		_, err := mpa.ParseStartup(b[:n])
		if e, ok := err.(*mpa.Error); !ok || e.Code != mpa.CodeStartupFrame || e.Offset != uint64(n) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	_, err := mpa.ParseStartup(b[:22])
	if want := "mpa: bad Private Data at byte 22 of the startup frame: 22 bytes where there should be 23; the frame is cut off, or its PD_Length is wrong"; err.Error() != want {
		t.Errorf("%q", err)
	}
	if _, err := mpa.ParseStartup(frame(mpa.StartupFields{PrivateData: make([]byte, 2000)})); err != nil {
		t.Errorf("2000 bytes of private data, whole: %v", err)
	}
}

// Proves E01, E07: the bits of the enhanced data; B, C and D are ignored without A.
func TestEnhanced(t *testing.T) {
	for _, c := range []struct {
		hex string
		e   mpa.Enhanced
		rtr mpa.RTR
		s   string
	}{
		{"00 00 00 00", mpa.Enhanced{}, 0, "ird 0 ord 0"},
		{"80 00 00 00", mpa.Enhanced{A: true}, 0, "A ird 0 ord 0 rtr none"},
		{"c0 00 00 00", mpa.Enhanced{A: true, B: true}, mpa.RTRSend, "A ird 0 ord 0 rtr send"},
		{"80 00 80 00", mpa.Enhanced{A: true, C: true}, mpa.RTRWrite, "A ird 0 ord 0 rtr write"},
		{"80 00 40 00", mpa.Enhanced{A: true, D: true}, mpa.RTRRead, "A ird 0 ord 0 rtr read"},
		{"40 00 c0 00", mpa.Enhanced{B: true, C: true, D: true}, 0, "ird 0 ord 0"},
		{"3f ff 00 80", mpa.Enhanced{IRD: mpa.NoNegotiation, ORD: 128}, 0, "ird not negotiated ord 128"},
		{"d2 34 ff fe", mpa.Enhanced{A: true, B: true, C: true, D: true, IRD: 0x1234, ORD: 0x3ffe},
			mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead, "A ird 4660 ord 16382 rtr send|write|read"},
	} {
		got, err := mpa.ParseEnhanced(append(testrig.Bytes(t, c.hex), "ULP data"...))
		if err != nil || got != c.e || got.RTR() != c.rtr || got.String() != c.s {
			t.Errorf("%s: %+v, %v, %v", c.hex, got, got.RTR(), err)
		}
		if b := mpa.AppendEnhanced(nil, &c.e); !bytes.Equal(b, testrig.Bytes(t, c.hex)) {
			t.Errorf("%+v: % x", c.e, b)
		}
	}
	if _, err := mpa.ParseEnhanced([]byte{1, 2, 3}); err == nil {
		t.Error("3 bytes: no error")
	}
	if b := mpa.AppendEnhanced(nil, &mpa.Enhanced{IRD: 0xffff, ORD: 0xc000}); !bytes.Equal(b,
		testrig.Bytes(t, "3f ff 00 00")) {
		t.Errorf("more than 14 bits: % x", b)
	}
}

// FuzzParseStartup gives any bytes to the codecs of startup frames.
func FuzzParseStartup(f *testing.F) {
	for _, name := range vectors(f, "siw-re") {
		f.Add(vector(f, name))
	}
	f.Add(frame(mpa.StartupFields{Key: mpa.KeyReply, PDLength: 65535}))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := mpa.ParseStartup(b)
		if err != nil {
			return
		}
		_ = frame.String()
		fields := frame.Fields()
		if got := mpa.AppendStartup(nil, &fields); !bytes.HasPrefix(b, got) || len(got) != len(frame) {
			t.Errorf("% x became % x", b, got)
		}
		if e, ok := frame.Enhanced(); ok {
			if got := mpa.AppendEnhanced(nil, &e); !bytes.HasPrefix(frame.PrivateData(), got) {
				t.Errorf("enhanced data % x became % x", frame.PrivateData(), got)
			}
		}
	})
}

// FuzzParseEnhanced gives any bytes to the codec of the enhanced data.
func FuzzParseEnhanced(f *testing.F) {
	f.Add([]byte{0x80, 1, 0xc0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := mpa.ParseEnhanced(b)
		if (err != nil) != (len(b) < mpa.EnhancedLen) {
			t.Fatal(err)
		}
		if err == nil && !bytes.HasPrefix(b, mpa.AppendEnhanced(nil, &e)) {
			t.Errorf("% x became %+v", b, e)
		}
	})
}

// Proves E02, T01, T04: a frame's dialect follows from Rev and S.
func TestFrameDialect(t *testing.T) {
	for _, c := range []struct {
		rev  uint8
		s    bool
		want mpa.Dialect
	}{
		{0, false, mpa.DialectRevision0},
		{0, true, mpa.DialectRevision0},
		{1, false, mpa.DialectRFC5044},
		{1, true, mpa.DialectRtr},
		{2, false, mpa.DialectRFC5044},
		{2, true, mpa.DialectRFC6581},
		{3, false, 0},
		{255, true, mpa.DialectRFC6581},
	} {
		f := mpa.StartupFrame(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, Rev: c.rev, S: c.s}))
		if got := f.Dialect(); got != c.want {
			t.Errorf("revision %d, S=%v: %v, want %v", c.rev, c.s, got, c.want)
		}
		f = mpa.StartupFrame(mpa.AppendStartup(nil,
			&mpa.StartupFields{Key: mpa.KeyRequest, Rev: c.rev, S: c.s, PrivateData: []byte("data")}))
		if _, ok := f.Enhanced(); ok != (c.want == mpa.DialectRFC6581) {
			t.Errorf("revision %d, S=%v: enhanced data %v", c.rev, c.s, ok)
		}
	}
}

// Proves E07: the kinds of RTR indication are the Control Flags B, C and D, beside A.
func TestFlags(t *testing.T) {
	for kinds, want := range map[mpa.RTR]string{
		0: "A", mpa.RTRSend: "AB", mpa.RTRWrite: "AC", mpa.RTRRead: "AD",
		mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead: "ABCD",
	} {
		e := mpa.Enhanced{IRD: 3, ORD: 4}.WithRTR(kinds)
		if e.Flags() != want || e.RTR() != kinds || e.IRD != 3 || e.ORD != 4 {
			t.Errorf("%v: flags %q of %v", kinds, e.Flags(), e)
		}
	}
	if e := (mpa.Enhanced{B: true}); e.Flags() != "B" || e.RTR() != 0 {
		t.Errorf("without A: %q, %v", e.Flags(), e.RTR())
	}
	for _, f := range []struct {
		frame interface{ Flags() string }
		want  string
	}{
		{mpa.StartupFrame(mpa.AppendStartup(nil, &mpa.StartupFields{M: true, C: true, R: true, S: true})), "MCRS"},
		{mpa.StartupFrame(mpa.AppendStartup(nil, &mpa.StartupFields{C: true, S: true, Res: 15})), "CS"},
		{mpa.StartupFrame(mpa.AppendStartup(nil, &mpa.StartupFields{})), ""},
		{mpa.StartKey(mpa.AppendStartKey(nil, &mpa.StartKeyFields{M: true, C: true})), "MC"},
		{mpa.StartKey(mpa.AppendStartKey(nil, &mpa.StartKeyFields{C: true})), "C"},
	} {
		if got := f.frame.Flags(); got != f.want {
			t.Errorf("%v: %q, want %q", f.frame, got, f.want)
		}
	}
}
