package conform_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A chunkWay changes a chunk of SCTP on its way, of which the value is without padding; nil
// leaves it out.
type chunkWay func(kind chunk.Type, flags byte, value []byte) (byte, []byte)

// An sctpVariant is our endpoint over SCTP with one rule broken.
type sctpVariant struct {
	name     string
	rule     string // ID of the requirement
	caughtBy string // ID of the case
	rejects  bool
	early    bool // it sends a segment together with its Initiate
	plain    bool // it asks without RFC 6581
	active   bool // the endpoint is the one that asks for sessions
	reasons  bool // the rule is a SHOULD: the case does not judge who breaks it, and says so
	// toPeer and fromPeer stand on the way to the endpoint and from it, and last changes a whole packet from it.
	toPeer, fromPeer chunkWay
	last             func([]byte) []byte
}

// sctpVariants returns all of them. What the endpoint should have minded is taken out on the
// way to it.
func sctpVariants() []sctpVariant {
	indicated := onKinds(initParam(1), chunk.TypeInit)
	return []sctpVariant{
		{name: "no indication", rule: "C05", caughtBy: "sctp/indication",
			fromPeer: onKinds(noParams, chunk.TypeInitAck)},
		{name: "another indication", rule: "C05", caughtBy: "sctp/indication",
			fromPeer: onKinds(initParam(2), chunk.TypeInitAck)},
		{name: "more streams out than in", rule: "C10", caughtBy: "sctp/streams",
			fromPeer: onKinds(streams, chunk.TypeInitAck)},
		{name: "takes an INIT without indication", rule: "C05", caughtBy: "sctp/indication-none",
			toPeer: onKinds(addParam, chunk.TypeInit)},
		{name: "takes an INIT with another indication", rule: "C05",
			caughtBy: "sctp/indication-other", toPeer: indicated},
		{name: "answers an Initiate as an enhanced one", rule: "C01", caughtBy: "sctp/accept",
			fromPeer: function(2, 6)},
		{name: "answers by a Reject", rule: "C04", caughtBy: "sctp/accept", fromPeer: function(2, 3)},
		{name: "counts DDP-SSNs from 1", rule: "C04", caughtBy: "sctp/accept", fromPeer: onMessages(laterSSN)},
		{name: "sends ordered messages", rule: "C04", caughtBy: "sctp/accept", fromPeer: ordered},
		{name: "has another PPID", rule: "C04", caughtBy: "sctp/accept",
			fromPeer: onMessages(func(m *sctp.Message) { m.PPID = 18 })},
		{name: "answers an Enhanced Initiate as a plain one", rule: "C01", caughtBy: "sctp/accept-enhanced",
			fromPeer: function(6, 2)},
		{name: "sends no enhanced data", rule: "C02", caughtBy: "sctp/accept-enhanced",
			fromPeer: onFunction(6, cut(6))},
		{name: "has more ORD than it may", rule: "C02", caughtBy: "sctp/accept-enhanced",
			fromPeer: onFunction(6, flip(7, 99))},
		{name: "answers A=0 with A=1", rule: "C02", caughtBy: "sctp/accept-enhanced",
			fromPeer: onFunction(6, flip(4, 0x80))},
		{name: "answers A=1 with A=0", rule: "C01", caughtBy: "sctp/accept-ready",
			fromPeer: onFunction(6, flip(4, 0))},
		{name: "negotiates what it must not", rule: "C02", caughtBy: "sctp/enhanced-unnegotiated",
			fromPeer: onFunction(6, flip(5, 4))},
		{name: "cannot take 512 bytes", rule: "C02", caughtBy: "sctp/private-data", toPeer: onMessages(lengthened)},
		{name: "cannot take 508 bytes", rule: "C02", caughtBy: "sctp/private-data-enhanced",
			toPeer: onMessages(lengthened)},
		{name: "does not end a session", rule: "C03", caughtBy: "sctp/terminate", fromPeer: onFunction(4, harmless)},
		{name: "has private data in a Terminate", rule: "C03", caughtBy: "sctp/terminate",
			fromPeer: onFunction(4, func(m *sctp.Message) { m.Data = append(m.Data, 1) })},
		{name: "has one session at a time", rule: "C04", caughtBy: "sctp/sessions",
			fromPeer: onMessages(func(m *sctp.Message) {
				if m.Stream == 2 {
					harmless(m)
				}
			})},
		{name: "does not begin anew with DDP-SSN 0", rule: "C08", caughtBy: "sctp/reuse",
			fromPeer: onSecond(2, laterSSN)},
		{name: "rejects by a Terminate", rule: "C01", caughtBy: "sctp/reject", rejects: true, fromPeer: function(3, 4)},
		{name: "rejects an Enhanced Initiate as a plain one", rule: "C01", caughtBy: "sctp/reject-enhanced",
			rejects: true, fromPeer: function(7, 3)},
		{name: "delivers in the order of arrival", rule: "C06", caughtBy: "sctp/ssn-order",
			toPeer: onSegments(inOrder())},
		{name: "delivers a DDP-SSN twice", rule: "C12", caughtBy: "sctp/ssn-twice", toPeer: onSegments(inOrder())},
		{name: "delivers a DDP-SSN that cannot be", rule: "C12", caughtBy: "sctp/ssn-far",
			toPeer: onSegments(inOrder())},
		{name: "takes 513 bytes", rule: "C02", caughtBy: "sctp/initiate-513", toPeer: onFunction(1, cut(516))},
		{name: "takes an Enhanced Initiate that is too short", rule: "C02", caughtBy: "sctp/initiate-enhanced-short",
			toPeer: onFunction(5, func(m *sctp.Message) {
				m.Data = append(m.Data, make([]byte, max(8-len(m.Data), 0))...)
			})},
		{name: "takes an unknown function for an Initiate", rule: "C01",
			caughtBy: "sctp/function-unknown", toPeer: function(8, 1)},
		{name: "begins a session with a segment", rule: "C04", caughtBy: "sctp/segment-first",
			toPeer: onSegments(asInitiate)},
		{name: "begins a session with an Accept", rule: "C04", caughtBy: "sctp/accept-first", toPeer: function(2, 1)},
		{name: "begins a session with a Terminate", rule: "C04", caughtBy: "sctp/terminate-first",
			toPeer: onFunction(4, func(m *sctp.Message) {
				if m.Data[1] == 0 {
					m.Data[3] = 1
				}
			})},
		{name: "minds no PPID", rule: "C09", caughtBy: "sctp/ppid", toPeer: onMessages(func(m *sctp.Message) {
			if m.PPID == 51 {
				m.PPID = sctp.PPIDSegment
			}
		})},
		{name: "minds no second Initiate", rule: "C04", caughtBy: "sctp/initiate-again", toPeer: onSecond(1, harmless)},
		{name: "minds no Accept", rule: "C04", caughtBy: "sctp/accept-again", toPeer: onFunction(2, harmless)},
		{name: "minds no Reject", rule: "C04", caughtBy: "sctp/reject-late", toPeer: onFunction(3, harmless)},
		{name: "minds no unknown function", rule: "C01", caughtBy: "sctp/function-unknown-open",
			toPeer: onFunction(8, harmless)},
		{name: "minds no private data in a Terminate", rule: "C02", caughtBy: "sctp/terminate-data",
			fromPeer: onFunction(4, harmless)},
		{name: "minds no short control", rule: "C04", caughtBy: "sctp/control-short", toPeer: shorter(4, 17)},
		{name: "minds no short segment", rule: "C04", caughtBy: "sctp/segment-short", toPeer: shorter(2, 16)},
		{name: "has two addresses", rule: "C14", caughtBy: "sctp/addresses", reasons: true,
			fromPeer: onKinds(address, chunk.TypeInitAck)},
		{name: "sends segments in fragments", rule: "C11", caughtBy: "sctp/segments", fromPeer: fragmented()},
		{name: "writes elsewhere than told", rule: "C11", caughtBy: "sctp/segments", fromPeer: onSegments(elsewhere)},
		{name: "waits for an acknowledgment", rule: "C15", caughtBy: "sctp/undelayed",
			reasons: true, fromPeer: delayed},
		{name: "does not answer who has to wait", rule: "C07", caughtBy: "sctp/requests",
			fromPeer: onMessages(func(m *sctp.Message) {
				if m.Stream == 40 {
					harmless(m)
				}
			})},
		{name: "ends a session without a Terminate of RDMAP", rule: "C13", caughtBy: "sctp/error-among",
			fromPeer: onSegments(unlessTerminate)},
		{name: "ends the other sessions, too", rule: "C13", caughtBy: "sctp/error-among",
			fromPeer: onMessages(func(m *sctp.Message) {
				if m.Stream == 2 && m.Function() == 0 {
					m.PPID, m.Data = sctp.PPIDControl, []byte{m.Data[0], m.Data[1], 0, 4}
				}
			})},
		{name: "tells each session of the association's end", rule: "C13", caughtBy: "sctp/abort-quiet",
			reasons: true, last: terminating()},
	}
}

// TestSCTPVariants has every broken variant caught by the case that is meant for it, which the
// endpoint as it is passes over the same relay.
func TestSCTPVariants(t *testing.T) {
	t.Parallel()
	crowd(t, slices.Concat(sctpVariants(), activeVariants()), func(v sctpVariant) string { return v.name },
		func(t *testing.T, v sctpVariant) { v.judge(t) })
}

// judge has the variant caught, and the endpoint as it is pass.
func (v *sctpVariant) judge(t *testing.T) {
	c := caseOf(t, v.caughtBy)
	if !strings.Contains(" "+strings.Join(c.Requirements, " ")+" ", " "+v.rule+" ") {
		t.Errorf("case %s is about %v, not about %s", c.ID, c.Requirements, v.rule)
	}
	want := v.caught()
	// On a busy machine nobody may come in so short a time, or what is wrong may come too late.
	for patience := time.Second; ; patience *= 4 {
		broken := variantNamed(v.name) // some count what has passed
		r, text := broken.result(t, patience, c, want)
		if r.Verdict == want && (want == conform.Fail || strings.Contains(r.Why, "SHOULD NOT")) {
			break
		}
		if patience > testrig.Soon/4 {
			t.Errorf("want %v, got\n%s", want, text)
			break
		}
	}
	whole := sctpVariant{rejects: v.rejects, active: v.active, plain: v.plain}
	if r, text := whole.result(t, testrig.Soon, c, conform.Pass); r.Verdict != conform.Pass {
		t.Errorf("want %v, got\n%s", conform.Pass, text)
	}
}

// caught is the verdict on the variant.
func (v *sctpVariant) caught() conform.Verdict {
	if v.reasons {
		return conform.NotApplicable
	}
	return conform.Fail
}

func variantNamed(name string) sctpVariant {
	all := slices.Concat(sctpVariants(), activeVariants())
	return all[slices.IndexFunc(all, func(v sctpVariant) bool { return v.name == name })]
}

// result runs one case. A broken variant may do nothing, which is waited for.
func (v *sctpVariant) result(t *testing.T, patience time.Duration, c conform.Case,
	want conform.Verdict) (r conform.Result, text string) {
	t.Helper()
	var o conform.Options
	if v.active {
		var addr string
		o, addr = activeOverSCTP(t)
		var spoken func([]byte) []byte
		if v.early {
			spoken = early
		}
		sctpClient(t, relay(t, addr, v.fromPeer, v.toPeer, spoken, nil), v.plain)
	} else {
		o = overSCTP(relay(t, sctpServer(t, v.rejects), v.toPeer, v.fromPeer, nil, v.last))
	}
	o.Timeout = patience
	if want != conform.Pass {
		o.Quiet = patience
	}
	if v.rejects {
		o.App = conform.AppReject
	}
	r, err := conform.RunCase(t.Context(), o, c)
	testrig.Must(t, err)
	var b strings.Builder
	conform.NewPrinter(&b, true).Result(&r)
	return r, b.String()
}

// relay passes packets between a server and who has dialed, and changes their chunks, and then each packet as a whole.
func relay(t *testing.T, to string, toServer, fromServer chunkWay, there, back func([]byte) []byte) (addr string) {
	t.Helper()
	r, err := script.RelaySCTP(to, func(_ *script.SCTPFlow, up bool, packet []byte, deliver func([]byte)) {
		way, whole := fromServer, back
		if up {
			way, whole = toServer, there
		}
		if packet = changed(packet, way); whole != nil {
			packet = whole(packet)
		}
		deliver(packet)
	})
	testrig.Must(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r.Addr()
}

// changed returns a packet as it goes on; the relay sees to the checksum.
func changed(p []byte, way chunkWay) []byte {
	if way == nil {
		return p
	}
	out := append([]byte(nil), p[:12]...)
	all, _ := chunk.In(p)
	for _, c := range all {
		c.Flags, c.Value = way(c.Type, c.Flags, append([]byte(nil), c.Value...))
		out = c.Append(out)
	}
	return out
}

// onKinds changes the chunks of a kind.
func onKinds(change func([]byte) []byte, kind chunk.Type) chunkWay {
	return func(k chunk.Type, flags byte, value []byte) (byte, []byte) {
		if k == kind {
			value = change(value)
		}
		return flags, value
	}
}

// onMessages changes user messages.
func onMessages(change func(*sctp.Message)) chunkWay {
	return onKinds(func(b []byte) []byte {
		m := sctp.Message{Stream: binary.BigEndian.Uint16(b[4:]), PPID: binary.BigEndian.Uint32(b[8:]), Data: b[12:]}
		change(&m)
		binary.BigEndian.PutUint32(b[8:], m.PPID)
		return append(b[:12:12], m.Data...)
	}, chunk.TypeData)
}

// onSegments changes DDP Segments, and onFunction session control of a function.
func onSegments(change func(*sctp.Message)) chunkWay {
	return onMessages(func(m *sctp.Message) {
		if m.PPID == sctp.PPIDSegment {
			change(m)
		}
	})
}

func onFunction(f sctp.Function, change func(*sctp.Message)) chunkWay {
	return onMessages(func(m *sctp.Message) {
		if m.Function() == f {
			change(m)
		}
	})
}

// onSecond changes the second message of a function on stream 0, as often as it comes.
func onSecond(f sctp.Function, change func(*sctp.Message)) chunkWay {
	var mu sync.Mutex
	seen := map[uint32]bool{}
	return func(kind chunk.Type, flags byte, b []byte) (byte, []byte) {
		second := false
		return onFunction(f, func(m *sctp.Message) {
			if m.Stream == 0 {
				mu.Lock()
				tsn := binary.BigEndian.Uint32(b)
				if _, known := seen[tsn]; !known {
					seen[tsn] = len(seen) > 0
				}
				second = seen[tsn]
				mu.Unlock()
			}
			if second {
				change(m)
			}
		})(kind, flags, b)
	}
}

// function has a function be another one.
func function(from, to sctp.Function) chunkWay {
	return onFunction(from, func(m *sctp.Message) { m.Data[3] = byte(to) })
}

// byte sets one byte of a message, and cut has it end.
func flip(at int, to byte) func(*sctp.Message) { return func(m *sctp.Message) { m.Data[at] = to } }

func cut(to int) func(*sctp.Message) {
	return func(m *sctp.Message) { m.Data = m.Data[:min(len(m.Data), to)] }
}

// harmless has a message be an empty Write, which nobody minds.
func harmless(m *sctp.Message) {
	m.PPID = sctp.PPIDSegment
	m.Data = []byte{m.Data[0], m.Data[1], 0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
}

func laterSSN(m *sctp.Message) { m.Data[1]++ }

// lengthened has an Initiate be too long.
func lengthened(m *sctp.Message) {
	if m.PPID == sctp.PPIDControl && len(m.Data) > 500 {
		m.Data = append(m.Data, make([]byte, mpa.MaxPrivateData)...)
	}
}

// ordered takes the U flag off.
func ordered(kind chunk.Type, flags byte, value []byte) (byte, []byte) {
	if kind == chunk.TypeData {
		flags &^= chunk.FlagUnordered
	}
	return flags, value
}

// inOrder gives segments the DDP-SSNs in which they come, from 1 on.
func inOrder() func(*sctp.Message) {
	var ssn uint16
	return func(m *sctp.Message) {
		ssn++
		binary.BigEndian.PutUint16(m.Data, ssn)
	}
}

// asInitiate has a first segment be an Initiate.
func asInitiate(m *sctp.Message) {
	if m.Data[0] == 0 && m.Data[1] == 0 {
		m.PPID, m.Data = sctp.PPIDControl, []byte{0, 0, 0, 1}
	}
}

// shorter has messages of a PPID that are shorter than they may be go on as a Write.
func shorter(than int, ppid uint32) chunkWay {
	last := uint16(0)
	return onMessages(func(m *sctp.Message) {
		switch {
		case m.PPID == ppid && len(m.Data) < than:
			m.Data = binary.BigEndian.AppendUint16(nil, last+1)
			harmless(m)
		case m.Stream == 0:
			last = binary.BigEndian.Uint16(m.Data)
		}
	})
}

// Changes of INIT and INIT ACK.

func noParams(b []byte) []byte {
	s, _ := chunk.ParseSetup(b)
	s.HasAdaptation = false
	return s.Append(nil)
}

func addParam(b []byte) []byte { return append(noParams(b), 0xc0, 6, 0, 8, 0, 0, 0, 1) }

func initParam(indication byte) func([]byte) []byte {
	return func(b []byte) []byte { return append(noParams(b), 0xc0, 6, 0, 8, 0, 0, 0, indication) }
}

func streams(b []byte) []byte {
	b[9]++
	return b
}
