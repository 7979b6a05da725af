package mpa

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/layout"
)

// The keys of startup frames, as on the wire.
const (
	KeyRequest = "MPA ID Req Frame"
	KeyReply   = "MPA ID Rep Frame"
	// KeyRtr is the key of the Rtr frame of the 2007 proposal, whose bytes spell it that way and whose text spells it
	// "MPA ID Rtr Frame".
	KeyRtr = "MPA ID RtR Frame"
	// KeyRtrInLetters is the other spelling, which receivers take too.
	KeyRtrInLetters = "MPA ID Rtr Frame"
	// KeyStart is the 15 bytes of the Start Key of the first MPA drafts.
	KeyStart = "MPA ident frame"

	// keyWord is what all keys begin with, and frameWord those of frames.
	keyWord   = "MPA "
	frameWord = keyWord + "ID "
)

// BeginsAsKey reports whether b begins as all keys do, as far as it goes.
func BeginsAsKey(b []byte) bool {
	n := min(len(b), len(keyWord))
	return string(b[:n]) == keyWord[:n]
}

// FindKey returns the first index from which on b begins as all keys do, as far as it
// goes, and len(b) if there is none.
func FindKey(b []byte) int {
	if i := bytes.Index(b, []byte(keyWord)); i >= 0 {
		return i
	}
	i := max(0, len(b)-len(keyWord)+1)
	for !BeginsAsKey(b[i:]) {
		i++
	}
	return i
}

// greeting is how another protocol, or another frame of MPA, begins.
type greeting struct {
	prefix string
	name   string
	hint   string
}

const (
	rtrName = "the Rtr frame of the 2007 proposal"
	rtrHint = "an Rtr frame follows only a Reply with S=1: the peer sent it unasked"
)

const plainTCPHint = "the peer does not speak MPA on this port; check address and port"

// greetings names what arrives in place of a startup frame. The first match
// decides.
var greetings = [...]greeting{
	{KeyRequest, "an MPA Request Frame", "the peer uses Request and Reply Frames: both ends must use the same dialect"},
	{KeyReply, "an MPA Reply Frame", "the peer uses Request and Reply Frames: both ends must use the same dialect"},
	{KeyRtr, rtrName, rtrHint},
	{KeyRtrInLetters, rtrName, rtrHint},
	{KeyStart, "the Start Key of the first MPA drafts",
		"the peer uses Start Keys: both ends must use the same dialect"},
	{"\x16\x03", "a TLS ClientHello", "MPA has no TLS of its own: have the peer switch TLS off, or listen with TLS (iwarp.ListenConfig.NewListener on a tls.Listener)"},
	{"\x15\x03", "a TLS alert", "MPA runs over plain TCP: the peer expects TLS on this port"},
	{"HTTP/", "an HTTP response", plainTCPHint},
	{"GET ", "an HTTP request", plainTCPHint},
	{"HEAD ", "an HTTP request", plainTCPHint},
	{"POST ", "an HTTP request", plainTCPHint},
	{"PUT ", "an HTTP request", plainTCPHint},
	{"OPTIONS ", "an HTTP request", plainTCPHint},
	{"CONNECT ", "an HTTP request", plainTCPHint},
	{"PRI * HTTP/2", "an HTTP/2 preface", plainTCPHint},
	{"SSH-", "an SSH banner", plainTCPHint},
}

const (
	twoInitiatorsHint      = "both ends were started as Initiator: start one of them as Responder"
	twoRespondersHint      = "both ends were started as Responder: start one of them as Initiator"
	maybeTwoInitiatorsHint = "what arrived may be the private data message of another Initiator: if both ends were started as Initiator, start one of them as Responder"
)

const startKeyHint = "the Start Key is not served here: it takes an RNIC that has DDP and RDMAP version 0, and its dialect switched on; or have the peer send a Request Frame"

const fpduHint = "the peer is in Full Operation already, without a startup; both ends must start MPA"

// keyError says what came in place of the key that is waited for.
//
// RFC 5044, section 7.1.1: "Responder mode receivers MUST check this field for the
// same value, and close the connection and report an error locally if any other
// value is detected", and the same for "Initiator mode receivers". [Q02] CULLEY,
// section 8.1: "If a received "Start Key" does not match the expected value, the
// TCP/DDP connection MUST be closed, and an error returned to the ULP." [K04]
func keyError(in *intake, got string) *StartupError {
	want := in.await.key()
	e := in.fail(FailureKey, &Error{
		Code:   CodeStartupFrame,
		Offset: uint64(difference(got, want)),
		Field:  "Key",
		Reason: fmt.Sprintf("got %s want %q", describeKey(got), want),
		Hint:   in.keyHint(want, got),
	})
	if in.await == awaitMessage {
		e.Err.Reason = fmt.Sprintf("got %s, and a private data message was to come", describeKey(got))
	}
	if kind, reason := in.sameRole(got); kind != 0 {
		e.Failure, e.Err.Reason, e.Err.Hint = kind, kind.String()+": "+reason, kind.Hint()
	} else if in.await == awaitRequest && isStartKey(got) {
		e.Failure, e.Err.Hint = FailureDialect, startKeyHint
	}
	return e
}

// sameRole tells by a key whether the peer has the same role as we, and how that shows.
func (in *intake) sameRole(got string) (kind Failure, reason string) {
	switch {
	// Section 7.1.2: "MPA implementations MUST use the difference between the MPA
	// Request Frame and the MPA Reply Frame to check for incorrect
	// 'Initiator/Initiator' startups." [Q03]
	case in.role == RoleInitiator && got == KeyRequest:
		return FailureInitiatorInitiator, "the peer sent an MPA Request Frame too"
	// A Responder sends a Start Key in answer to one only, or after its private data
	// message. [Q03] [K02]
	case in.role == RoleInitiator && isStartKey(got):
		return FailureInitiatorInitiator, "the peer sent a Start Key of its own accord"
	case in.await == awaitRequest && got == KeyReply:
		return FailureResponderResponder, "the peer sent an MPA Reply Frame without a Request"
	}
	return 0, ""
}

func describeKey(got string) string {
	if g, ok := greet(got); ok {
		return fmt.Sprintf("%s (%q)", g.name, got)
	}
	return fmt.Sprintf("%q", got)
}

func (in *intake) keyHint(want, got string) string {
	g, known := greet(got)
	switch near := resembles(got, want); {
	case in.await == awaitRtr && (known || near == ""):
		return strayHint
	case known && g.hint != "":
		return g.hint
	case near != "":
		return near
	}
	if in.await == awaitRequest && in.served(DialectStartKey) {
		if hint := resembles(got, KeyStart); hint != "" {
			return "compared with the Start Key, " + hint
		}
	}
	switch maybe := in.maybeMessage(); {
	case maybe && in.role == RoleInitiator:
		return maybeTwoInitiatorsHint
	case maybe:
		return messageHint
	}
	return "the peer does not speak MPA, or streaming-mode data precedes its startup frame"
}

// resembles says how a key that is nearly right differs.
func resembles(got, want string) string {
	if want == "" {
		return "" // a private data message has no key
	}
	got = got[:min(len(got), len(want))] // a Start Key's bits are no part of it
	if strings.EqualFold(got, want) {
		return "only upper and lower case differ: the peer spells the key wrongly"
	}
	switch n := differences(got, want); {
	case n == 1:
		return fmt.Sprintf("byte %d differs: the peer has a wrong key, or the byte was damaged",
			difference(got, want))
	case n <= 4:
		return fmt.Sprintf("%d bytes differ, the first is byte %d: the peer has a wrong key, or the bytes were damaged", n, difference(got, want))
	}
	return ""
}

func greet(got string) (greeting, bool) {
	for _, g := range greetings {
		if strings.HasPrefix(got, g.prefix) {
			return g, true
		}
	}
	if marker := strings.HasPrefix(got, "\x00\x00\x00\x00"); marker && beginsFPDU(got[layout.MarkerLen:]) {
		return greeting{name: "an FPDU after a marker", hint: fpduHint}, true
	}
	return greeting{name: "an FPDU", hint: fpduHint}, beginsFPDU(got)
}

// beginsFPDU guesses whether bytes begin an FPDU: a length that is not text, and
// the control bytes of DDP and RDMAP version 1.
func beginsFPDU(data string) bool {
	const longest, ddp, rdmap = 0x3fff, 2, 3
	if len(data) <= rdmap {
		return false
	}
	length := int(data[0])<<8 | int(data[1])
	return length > rdmap && length <= longest && data[ddp]&0x3f == 1 && data[rdmap]&0xf0 == 0x40
}

// difference returns the first byte in which a and b differ.
func difference(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// differences returns in how many bytes a and b differ.
func differences(a, b string) (n int) {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n + max(len(a), len(b)) - min(len(a), len(b))
}
