package ulpdata_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// What ULPs put into private data.
const (
	smbBig = `
		00 00 00 10  # 00 IRD 16
		00 00 00 08  # 04 ORD 8`
	smbLittle = `
		10 00 00 00  # 00 IRD 16, little-endian
		08 00 00 00  # 04 ORD 8`
	rpcData = `
		f6 ab 0e 18  # 00 Format Identifier
		01           # 04 Version 1
		01           # 05 R: remote invalidation
		03           # 06 Send Size: 4 KiB
		ff           # 07 Receive Size: 256 KiB`
	nvmeAdmin = `
		00 00        # 00 RECFMT 0
		00 00        # 02 QID 0: the Admin Queue
		20 00        # 04 HRQSIZE 32
		1f 00        # 06 HSQSIZE 31
		00 00        # 08 CNTLID 0
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 # 0a reserved`
	nvmeIO = `
		00 00        # 00 RECFMT 0
		01 00        # 02 QID 1
		80 00        # 04 HRQSIZE 128
		7f 00        # 06 HSQSIZE 127
		02 01        # 08 CNTLID 258
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 # 0a reserved`
	nvmeReply = `
		00 00        # 00 RECFMT 0
		80 00        # 02 CRQSIZE 128
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 # 04 reserved`
	nvmeReject = `
		00 00        # 00 RECFMT 0
		06 00        # 02 STS 6`
	qpCall = `
		69 77 71 70  # 00 magic
		02           # 04 version 2: Sends have a prefix
		12 34 56     # 05 QP that is called
		00           # 08 reserved
		78 9a bc     # 09 QP that calls
		00 00 00 00 00 00 00 00 00 00 ff ff c0 a8 00 07 # 0c GID: 192.168.0.7`
	qpRefusal = `
		69 77 71 70  # 00 magic
		02 00 00 00  # 04 version 2`
)

// convention is what every convention of private data has.
type convention interface {
	fmt.Stringer
	Append(dst []byte) []byte
}

var conventions = []struct {
	bytes string
	want  convention
	line  string
}{
	{smbBig, ulpdata.SMBDirect{IRD: 16, ORD: 8}, "SMB Direct depths ird 16 ord 8, big-endian"},
	{rpcData, ulpdata.RPCOverRDMA{RemoteInvalidation: true, SendSize: 4096, ReceiveSize: 262144},
		"RPC-over-RDMA send size 4096 receive size 262144 remote invalidation"},
	{"f6 ab 0e 18 01 00 00 01", ulpdata.RPCOverRDMA{SendSize: 1024, ReceiveSize: 2048},
		"RPC-over-RDMA send size 1024 receive size 2048"},
	{nvmeAdmin, ulpdata.NVMeRequest{HRQSize: 32, HSQSize: 31}, "NVMe request qid 0 hrqsize 32 hsqsize 31 cntlid 0"},
	{nvmeIO, ulpdata.NVMeRequest{QID: 1, HRQSize: 128, HSQSize: 127, CntlID: 258},
		"NVMe request qid 1 hrqsize 128 hsqsize 127 cntlid 258"},
	{nvmeReply, ulpdata.NVMeReply{CRQSize: 128}, "NVMe reply crqsize 128"},
	{nvmeReject, ulpdata.NVMeReject{Status: 6}, "NVMe rejection, status 6: no resources"},
	{qpCall, ulpdata.QPCall{To: 0x123456, From: 0x789abc, GID: netip.MustParseAddr("192.168.0.7").As16(), Prefix: true},
		"a call of iwarp run --as roce, from QP 0x789abc at 192.168.0.7 for QP 0x123456, where Sends begin with 8 bytes of flags and Immediate Data"},
	{"69 77 71 70 01 00 01 00 00 00 02 00 fe 80 00 00 00 00 00 00 00 00 00 00 00 00 00 01",
		ulpdata.QPCall{To: 0x100, From: 0x200, GID: netip.MustParseAddr("fe80::1").As16()},
		"a call of iwarp run --as roce, from QP 0x000200 at fe80:0:0:0:0:0:0:1 for QP 0x000100"},
	{qpRefusal, ulpdata.QPRefusal{}, "the refusal of a call of iwarp run --as roce"},
}

// TestConventions writes, reads and names the private data that ULPs are known to send.
func TestConventions(t *testing.T) {
	for _, c := range conventions {
		b := testrig.Bytes(t, c.bytes)
		if got := c.want.Append([]byte("before")); !bytes.Equal(got, append([]byte("before"), b...)) {
			t.Errorf("%v: wrote % x", c.want, got)
		}
		if got := ulpdata.Recognize(b); got != fmt.Stringer(c.want) {
			t.Errorf("% x: %#v want %#v", b, got, c.want)
		}
		if got := ulpdata.Describe(b); got != "like "+c.line {
			t.Errorf("%q want %q", got, c.line)
		}
	}
	if got := ulpdata.Recognize(testrig.Bytes(t, smbLittle)); got != fmt.Stringer(ulpdata.SMBDirect{IRD: 16, ORD: 8}) {
		t.Errorf("little-endian: %v", got)
	}
	if got, want := ulpdata.Describe(testrig.Bytes(t, smbLittle)),
		"like SMB Direct depths ird 16 ord 8, little-endian: Linux's client"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for status, want := range map[uint16]string{
		0: "NVMe rejection, status 0", 7: "NVMe rejection, status 7: invalid IRD",
		8: "NVMe rejection, status 8: invalid ORD", 9: "NVMe rejection, status 9: invalid controller ID",
		10: "NVMe rejection, status 10",
	} {
		if got := (ulpdata.NVMeReject{Status: status}).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNoConvention gives private data that follows none.
func TestNoConvention(t *testing.T) {
	for data, want := range map[string]string{
		"":                                 "none",
		"hello":                            `5 bytes of text: "hello"`,
		"rping\x00\x00\x00":                `8 bytes of text: "rping"`,
		"a ~tilde":                         `8 bytes of text: "a ~tilde"`,
		strings.Repeat("x", 64):            `64 bytes of text: "` + strings.Repeat("x", 64) + `"`,
		"two\nlines":                       "9 bytes: 74 77 6f 0a 6c 69 6e 65 73",
		"\x00\x00\x00\x00":                 "4 bytes: 00 00 00 00",
		"\x00\x00\x63\x00":                 "4 bytes: 00 00 63 00",
		strings.Repeat("x", 70):            `70 bytes of text: "` + strings.Repeat("x", 64) + `" ...`,
		"\xf6\xab\x0e\x18\x02\x01\x03\x03": "8 bytes: f6 ab 0e 18 02 01 03 03",
		"\x00\x00\x00\x01\x00\x00\x00\x00": "8 bytes: 00 00 00 01 00 00 00 00",
		"\x00\x00\x00\x01\x01\x00\x00\x00": "8 bytes: 00 00 00 01 01 00 00 00",
	} {
		if got := ulpdata.Describe([]byte(data)); got != want {
			t.Errorf("%q: %q want %q", data, got, want)
		}
	}
	zero := make([]byte, 32)
	for _, at := range []int{0, 11, 31} {
		b := testrig.Bytes(t, nvmeIO)
		b[at] = 1
		if got := ulpdata.Recognize(b); got != nil {
			t.Errorf("byte %d: %v", at, got)
		}
	}
	for _, at := range []int{4, 6} { // the sizes of the host's queues
		b := testrig.Bytes(t, nvmeIO)
		b[at] = 0
		if got := ulpdata.Recognize(b); got != nil {
			t.Errorf("no bytes at %d: %v", at, got)
		}
	}
	if got := ulpdata.Recognize(zero); got != nil {
		t.Errorf("zero bytes: %v", got)
	}
}

// TestSMBDirectOrder reads depths in both orders; no bytes are of both.
func TestSMBDirectOrder(t *testing.T) {
	for hex, order := range map[string]binary.ByteOrder{
		smbBig:                    binary.BigEndian,
		smbLittle:                 binary.LittleEndian,
		smbBig + " \n 61 62 63":   binary.BigEndian,
		"00 00 ff ff 00 00 00 01": binary.BigEndian,
		"ff ff 00 00 01 00 00 00": binary.LittleEndian,
		"00 00 00 10 08 00 00 00": nil,
		"00 01 00 00 00 00 00 01": nil,
		"00 01 00 01 00 01 00 01": nil,
		"00 00 00 00 00 00 00 08": nil,
		"00 00 00 10 00 00 00":    nil,
		"":                        nil,
	} {
		d, got, err := ulpdata.ParseSMBDirect(testrig.Bytes(t, hex))
		if got != order || (err == nil) != (order != nil) || err != nil && !errors.Is(err, ulpdata.ErrConvention) {
			t.Errorf("%s: %v, %v, %v", hex, d, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := ulpdata.SMBDirect{IRD: rapid.Uint32Range(1, 0xffff).Draw(t, "IRD"),
			ORD: rapid.Uint32Range(1, 0xffff).Draw(t, "ORD")}
		little := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, want.IRD), want.ORD)
		if got, order, err := ulpdata.ParseSMBDirect(little); got != want || order != binary.LittleEndian {
			t.Errorf("%v, %v, %v", got, order, err)
		}
		if got, order, err := ulpdata.ParseSMBDirect(want.Append(nil)); got != want || order != binary.BigEndian {
			t.Errorf("%v, %v, %v", got, order, err)
		}
	})
}

// TestSMBDirectDepths has two ends of revision 1 exchange SMB Direct's depths: they end
// with ORDs that the other end's IRDs cover.
func TestSMBDirectDepths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depths := func(name string) (ulpdata.SMBDirect, mpa.Offer) {
			d := ulpdata.SMBDirect{IRD: uint32(rapid.IntRange(1, 0x3ffe).Draw(t, name+" IRD")),
				ORD: uint32(rapid.IntRange(1, 0x3ffe).Draw(t, name+" ORD"))}
			return d, mpa.Offer{
				Dialect: mpa.DialectRFC5044, IRD: mpa.Depth(d.IRD), ORD: mpa.Depth(d.ORD),
				PrivateData: append(d.Append(nil), name...),
			}
		}
		ours, offer := depths("initiator")
		theirs, answer := depths("responder")
		i, r := connect(t, offer, answer.Answer())
		a, errA := ulpdata.WithSMBDirect(i)
		b, errB := ulpdata.WithSMBDirect(r)
		if errA != nil || errB != nil || string(a.PrivateData) != "responder" || string(b.PrivateData) != "initiator" {
			t.Fatalf("%v, %v, %q, %q", errA, errB, a.PrivateData, b.PrivateData)
		}
		for _, c := range []struct {
			n         mpa.Negotiated
			own, peer ulpdata.SMBDirect
		}{{a, ours, theirs}, {b, theirs, ours}} {
			want := c.own.Meet(c.peer)
			if uint32(c.n.IRD) != want.IRD || uint32(c.n.ORD) != want.ORD || uint32(c.n.PeerIRD) != c.peer.IRD ||
				uint32(c.n.PeerORD) != c.peer.ORD {
				t.Errorf("%+v, want %v", c.n, want)
			}
		}
		if a.ORD > b.IRD || b.ORD > a.IRD || a.IRD != offer.IRD || b.IRD != answer.IRD {
			t.Errorf("initiator %d/%d, responder %d/%d", a.IRD, a.ORD, b.IRD, b.ORD)
		}
	})
	n := mpa.Negotiated{Enhanced: true, PrivateData: testrig.Bytes(t, smbBig)}
	if _, err := ulpdata.WithSMBDirect(n); !errors.Is(err, ulpdata.ErrConvention) ||
		!strings.Contains(err.Error(), "RFC 6581") {
		t.Error(err)
	}
	n = mpa.Negotiated{ORD: 5, PrivateData: []byte("hello")}
	if got, err := ulpdata.WithSMBDirect(n); !errors.Is(err, ulpdata.ErrConvention) || got.ORD != 5 ||
		string(got.PrivateData) != "hello" {
		t.Errorf("%+v, %v", got, err)
	}
	n = mpa.Negotiated{ORD: mpa.NoNegotiation, PrivateData: testrig.Bytes(t, "00 00 ff ff 00 00 ff ff")}
	if got, err := ulpdata.WithSMBDirect(n); err != nil || got.ORD != 0x3ffe ||
		got.PeerIRD != 0x3ffe || got.PeerORD != 0x3ffe {
		t.Errorf("%+v, %v", got, err)
	}
}

// connect has two startup machines agree.
func connect(t *rapid.T, offer mpa.Offer, answer mpa.Answer) (initiator, responder mpa.Negotiated) {
	var now time.Time
	i, err := mpa.NewInitiator(offer)
	if err != nil {
		t.Fatal(err)
	}
	r := mpa.NewResponder(mpa.ResponderConfig{})
	r.Start(now)
	if _, err := r.Input(now, i.Start(now)); err != nil {
		t.Fatal(err)
	}
	reply, err := r.Accept(now, answer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Input(now, reply); err != nil || !i.Done() || !r.Done() {
		t.Fatalf("%v, done %v and %v", err, i.Done(), r.Done())
	}
	return i.Negotiated(), r.Negotiated()
}

// TestRPCOverRDMASizes writes sizes that cannot be said: they are rounded down, and up
// to the smallest.
func TestRPCOverRDMASizes(t *testing.T) {
	for size, want := range map[uint32]byte{0: 0, 1: 0, 1024: 0, 2047: 0, 2048: 1, 4096: 3, 262143: 254,
		262144: 255, 1 << 31: 255} {
		b := ulpdata.RPCOverRDMA{SendSize: size, ReceiveSize: size}.Append(nil)
		if b[6] != want || b[7] != want {
			t.Errorf("%d bytes: % x", size, b)
		}
	}
}

// TestConventionErrors parses what is none.
func TestConventionErrors(t *testing.T) {
	for _, bad := range []string{"", "f6 ab 0e 18 01 00 00", "18 0e ab f6 01 00 03 03", "f6 ab 0e 18 00 00 03 03"} {
		if _, err := ulpdata.ParseRPCOverRDMA(testrig.Bytes(t, bad)); !errors.Is(err, ulpdata.ErrConvention) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, bad := range [][]byte{nil, make([]byte, 31), append([]byte{1, 0}, make([]byte, 30)...)} {
		_, request := ulpdata.ParseNVMeRequest(bad)
		_, reply := ulpdata.ParseNVMeReply(bad)
		if !errors.Is(request, ulpdata.ErrConvention) || !errors.Is(reply, ulpdata.ErrConvention) {
			t.Errorf("% x: %v, %v", bad, request, reply)
		}
	}
	call := testrig.Bytes(t, qpCall)
	for _, bad := range [][]byte{nil, call[:27], append([]byte{0}, call[1:]...),
		append([]byte("iwqp\x00"), call[5:]...), append([]byte("iwqp\x03"), call[5:]...)} {
		if _, err := ulpdata.ParseQPCall(bad); !errors.Is(err, ulpdata.ErrConvention) {
			t.Errorf("% x: %v", bad, err)
		}
	}
	if c, err := ulpdata.ParseQPCall(append(call, "more"...)); err != nil || c.From != 0x789abc {
		t.Errorf("%v, %v", c, err)
	}
	for _, bad := range []string{"", "iwqp\x02\x00\x00", "iwqp\x01\x00\x00\x00", "iwqp\x02\x00\x00\x00\x00"} {
		if _, err := ulpdata.ParseQPRefusal([]byte(bad)); !errors.Is(err, ulpdata.ErrConvention) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := ulpdata.ParseNVMeReject([]byte{0, 0, 1}); !errors.Is(err, ulpdata.ErrConvention) {
		t.Error(err)
	}
}

// FuzzRecognize gives any bytes to the guess: whatever is recognized is
// written as it was read, but for what a reader does not look at.
func FuzzRecognize(f *testing.F) {
	for _, c := range conventions {
		f.Add(testrig.Bytes(f, c.bytes))
	}
	f.Add(testrig.Bytes(f, smbLittle))
	f.Fuzz(func(t *testing.T, b []byte) {
		line := ulpdata.Describe(b)
		if line == "" || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) || len(line) > 400 {
			t.Errorf("% x: %q", b, line)
		}
		c, ok := ulpdata.Recognize(b).(convention)
		if !ok {
			return
		}
		again := c.Append(nil)
		if got := ulpdata.Recognize(again); got != fmt.Stringer(c) || len(again) > len(b) {
			t.Errorf("% x is %v, and % x is %v", b, c, again, got)
		}
	})
}
