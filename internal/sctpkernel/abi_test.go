package sctpkernel

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

// The bytes are those of Linux 6.1 on x86-64, as recvmsg gave them.
const (
	upHex         = "0180000014000000000000001000100005000000"
	otherUpHex    = "0180000014000000000000000a00100005000000"
	indicationHex = "07800000100000000100000005000000"
	dryHex        = "098000000c00000003000000"
	shutdownHex   = "058000000c00000006000000"
	completeHex   = "0180000014000000030000000000000006000000"
	abortedHex    = "018000001f0000000100000c0000000008000000000c000b62656361757365"
	ownAbortHex   = "01800000140000000100000c0000000007000000"
	refusedHex    = "0180000014000000040000000000000000000000"

	controlHex = "2c0000000000000084000000030000000f00000001000000000000109bf7a9549bf7a954000000000400000000000000"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// littleEndian64 skips what was recorded on such a machine elsewhere.
func littleEndian64(t *testing.T) {
	t.Helper()
	if wordLen != 8 || native.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the bytes are of a little-endian machine of 64 bits")
	}
}

func TestNotifications(t *testing.T) {
	littleEndian64(t)
	for text, want := range map[string]notification{
		upHex:         {kind: eventAssocChange, assoc: 5, state: commUp, out: 16, in: 16},
		otherUpHex:    {kind: eventAssocChange, assoc: 5, state: commUp, out: 10, in: 16},
		indicationHex: {kind: eventAdaptation, assoc: 5, indication: 1},
		dryHex:        {kind: eventSenderDry, assoc: 3},
		shutdownHex:   {kind: eventShutdown, assoc: 6},
		completeHex:   {kind: eventAssocChange, assoc: 6, state: shutdownComplete},
		abortedHex: {kind: eventAssocChange, assoc: 8, state: commLost, cause: chunk.CauseUserAbort,
			info: []byte("\x00\x0c\x00\x0bbecause")},
		ownAbortHex: {kind: eventAssocChange, assoc: 7, state: commLost, cause: chunk.CauseUserAbort},
		refusedHex:  {kind: eventAssocChange, state: cannotStart},

		"0280000008000000": {kind: 0x8002}, // of no use here
	} {
		b := unhex(t, text)
		got, err := parseNotification(b)
		if len(got.info) == 0 {
			got.info = nil
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(notification{})); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, d)
		}
		for n := range leastLen(want.kind) {
			if _, err := parseNotification(b[:n]); !errors.Is(err, errShort) {
				t.Errorf("%s: %d bytes of it: %v", text, n, err)
			}
		}
	}
}

// TestAborted: what the peer's consumer has given as its reason, the kernel's own causes, and what lies about its
// length.
func TestAborted(t *testing.T) {
	for _, c := range []struct {
		cause uint16
		info  string
		want  string
	}{
		{12, "\x00\x0c\x00\x0bbecause", `the peer has aborted the association: "because"`},
		{12, "\x00\x0c\x00\x04", "the peer has aborted the association"},
		{12, "\x00\x0c\xff\xffbecause", `the peer has aborted the association: "because"`},
		{12, "\x00\x0c\x00\x00because", "the peer has aborted the association"},
		{12, "\x00\x0c\x00", "the peer has aborted the association"},
		{12, "", "the peer has aborted the association"},
		{13, "\x00\x0d\x00\x09wrong", `the peer has aborted the association: "wrong"`},
		{10, "\x00\x0a\x00\x04", "the peer has aborted the association (error cause 10)"},
		{0, "", "the peer has aborted the association"},
	} {
		if err := aborted(c.cause, []byte(c.info)); !errors.Is(err, lowerlayer.ErrAborted) || err.Error() != c.want {
			t.Errorf("%d, %q: %v, want %v", c.cause, c.info, err, c.want)
		}
	}
}

func TestControl(t *testing.T) {
	littleEndian64(t)
	b := unhex(t, controlHex)
	want := rcvInfo{stream: 15, flags: flagUnordered, ppid: 16}
	if got, ok := parseControl(b); !ok || got != want {
		t.Errorf("got %+v, %v", got, ok)
	}
	other := unhex(t, "14000000000000000100000002000000aabbccdd00000000")
	if got, ok := parseControl(append(other, b...)); !ok || got != want {
		t.Errorf("after another: %+v, %v", got, ok)
	}
	if got, ok := parseControl(b[:0x2c]); !ok || got != want {
		t.Errorf("without padding: %+v, %v", got, ok)
	}
	empty := unhex(t, "10000000000000000100000002000000")
	if got, ok := parseControl(append(empty, b...)); !ok || got != want {
		t.Errorf("after one without data: %+v, %v", got, ok)
	}
	for at, other := range map[int]byte{8: 1, 12: 2} { // another level, or another kind
		b := bytes.Clone(b)
		b[at] = other
		if got, ok := parseControl(b); ok {
			t.Errorf("%x is %+v", b, got)
		}
	}
	if most := 1 << 16; parseWord(word(nil, most)) != most || parseWord(word(nil, most+1)) != 0 {
		t.Errorf("%d is no size, or %d is one", most, most+1)
	}
	for n := range 0x2c {
		if got, ok := parseControl(b[:n]); ok {
			t.Errorf("%d bytes of it: %+v", n, got)
		}
	}
	for _, n := range []byte{0, 15, 16, 0x2b} { // a header that lies about its length
		lies := bytes.Clone(b)
		lies[0] = n
		if got, ok := parseControl(lies); ok {
			t.Errorf("a length of %d: %+v", n, got)
		}
	}
	sent := sndInfo{stream: 3, flags: flagUnordered | flagSackImmediately, ppid: 17, assoc: 5}.append(nil)
	if got := hex.EncodeToString(sent); got != "200000000000000084000000020000000300090000000011"+"00000000"+
		"05000000" {
		t.Errorf("sent with %s", got)
	}
}

// TestStructures: the kernel takes no option whose size is another.
func TestStructures(t *testing.T) {
	c := Config{}
	c.fill()
	sizes := map[int]int{
		optAdaptation: 4, optInitMsg: 8, optNoDelay: 4, optRecvRcvInfo: 4, optRTOInfo: 16, optAssocInfo: 20,
		optPeerParams: 156, optEvent: 8,
	}
	for _, o := range c.options() {
		if len(o.value) != sizes[o.opt] {
			t.Errorf("%s: %d bytes", o.name, len(o.value))
		}
	}
}

// TestNoDelay: the kernel does not wait with a message for others to be bundled with it (SCTP_NODELAY).
//
// Proves C15.
func TestNoDelay(t *testing.T) {
	var values []string
	for _, o := range (&Config{}).options() {
		if o.opt == optNoDelay {
			values = append(values, hex.EncodeToString(o.value))
		}
	}
	if want := hex.EncodeToString(native.AppendUint32(nil, 1)); len(values) != 1 || values[0] != want {
		t.Errorf("set to %q, want %s once", values, want)
	}
}

// TestPeerParams: heartbeats and retransmissions stand where struct sctp_paddrparams of <linux/sctp.h> has them, after
// an association and an address that are zeros.
func TestPeerParams(t *testing.T) {
	littleEndian64(t)
	c := Config{Heartbeat: 2500 * time.Millisecond}
	want := strings.Repeat("00", 132) + "c4090000" + "0700" + "00000000" + "00000000" + "01000000" + "00000000" + "0000"
	if got := hex.EncodeToString(c.peerParams()); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}

// FuzzKernel: whatever the kernel says, nothing outside of it is read, and what was found is in it.
func FuzzKernel(f *testing.F) {
	for _, text := range []string{upHex, indicationHex, dryHex, shutdownHex, completeHex, abortedHex, ownAbortHex,
		refusedHex, controlHex} {
		f.Add(unhex(f, text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := parseNotification(b)
		if err == nil && (len(b) < leastLen(n.kind) || !bytes.HasSuffix(b, n.info)) {
			t.Errorf("%x: %+v", b, n)
		}
		if err := aborted(n.cause, n.info); !errors.Is(err, lowerlayer.ErrAborted) {
			t.Error(err)
		}
		if r, ok := parseControl(b); ok && len(b) < cmsgHeaderLen+rcvInfoLen {
			t.Errorf("%x: %+v", b, r)
		}
	})
}
