package engine

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A QP is asked for bytes only when it has some: after each post, and after a Read has
// come, until they are built.
func TestPending(t *testing.T) {
	want := func(p *peer, what string, want bool) {
		t.Helper()
		if p.Machine.Pending() != want {
			t.Errorf("%s: pending %t", what, !want)
		}
	}
	p := initiator(t)
	want(p, "nothing posted", false)
	p.post(work(1, OpSend))
	want(p, "a Send", true)
	p.output()
	want(p, "sent", false)
	r := p.region(numbered(10), remoteAll)
	p.send(request(1, readOf(r.STag(), 10)))
	want(p, "a Read Request", true)
	p.window = 5
	p.output()
	want(p, "in flight", true)
	p.window = -1
	p.output()
	want(p, "answered", false)
	p.modify(Terminate)
	want(p, "a Terminate", true)
	p.output()
	want(p, "the Terminate is sent", false)

	p = initiator(t, p2p(mpa.RTRWrite))
	want(p, "an RTR indication", true)
	p.output()
	want(p, "the RTR indication is sent", false)

	p = responder(t)
	p.post(work(1, OpSend))
	want(p, "a Responder that has heard nothing", false)
	p.send(write(1, 0, nil))
	want(p, "a Responder that has heard something", true)
}

// One Output builds no more than fills a Gather, and the FPDU that exceeds it.
func TestGatherIsFull(t *testing.T) {
	p := initiator(t)
	r := p.region(make([]byte, 1<<20), remoteAll)
	p.post(work(1, OpSend, all(r, 1<<20)))
	n := len(slices.Concat(p.Machine.Output(p.clock, p.g)...))
	if n < gatherBytes || n >= gatherBytes+testMULPDU+12 {
		t.Errorf("%d bytes", n)
	}
}

// Every counter is added to every other's.
func TestStatsAdd(t *testing.T) {
	var a, b, want Stats
	fill := func(s *Stats, factor uint64) {
		n := uint64(0)
		var set func(v reflect.Value)
		set = func(v reflect.Value) {
			switch v.Kind() {
			case reflect.Uint64:
				n++
				v.SetUint(n * factor)
			case reflect.Array:
				for i := range v.Len() {
					set(v.Index(i))
				}
			case reflect.Struct:
				for i := range v.NumField() {
					set(v.Field(i))
				}
			}
		}
		set(reflect.ValueOf(s).Elem())
	}
	fill(&a, 10)
	fill(&b, 3)
	fill(&want, 13)
	b.TerminatesSent = map[rdmap.Code]uint64{rdmap.CodeMPACRC: 2}
	b.TerminatesRecv = map[rdmap.Code]uint64{rdmap.CodeMPACRC: 4}
	a.TerminatesRecv = map[rdmap.Code]uint64{rdmap.CodeMPACRC: 1, rdmap.CodeMPAMarker: 1}
	want.TerminatesSent = map[rdmap.Code]uint64{rdmap.CodeMPACRC: 2}
	want.TerminatesRecv = map[rdmap.Code]uint64{rdmap.CodeMPACRC: 5, rdmap.CodeMPAMarker: 1}
	a.Add(&b)
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without an EMSS it does not matter where TCP cuts, and a write is one record.
func TestOneRecord(t *testing.T) {
	p := initiator(t)
	r := p.region(make([]byte, 3000), remoteAll)
	p.post(work(1, OpSend, all(r, 3000)))
	p.post(work(2, OpRead, all(r, 10)))
	if n := len(p.Machine.Output(p.clock, p.g)); n != 1 {
		t.Errorf("%d records", n)
	}
}

// A receive is taken back by its cookie, wherever it is in the queue, and the others stay in
// order. One that is not there is not taken back.
func TestTakeBackReceive(t *testing.T) {
	p := responder(t)
	for id := range uint64(4) {
		w := RecvWork{ID: id, Cookie: id}
		if err := p.Machine.PostReceive(&w); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		cookie uint64
		want   bool
	}{{1, true}, {1, false}, {9, false}, {3, true}} {
		if got := p.Machine.TakeBackReceive(c.cookie); got != c.want {
			t.Errorf("cookie %d: %t", c.cookie, got)
		}
	}
	p.send(send(1, nil), send(2, nil))
	if len(p.done) != 2 || p.done[0].ID != 0 || p.done[1].ID != 2 {
		t.Errorf("completed %+v", p.done)
	}
}

// Begun tells of a position in the Send Queue whether all before it is built.
func TestBegun(t *testing.T) {
	p := initiator(t)
	p.post(work(1, OpSend))
	first := p.Machine.Posted()
	p.window = 5
	p.output()
	p.post(work(2, OpSend))
	second := p.Machine.Posted()
	if !p.Machine.Begun(first) || p.Machine.Begun(second) {
		t.Errorf("begun: %t and %t", p.Machine.Begun(first), p.Machine.Begun(second))
	}
	p.window = -1
	p.output()
	if !p.Machine.Begun(second) {
		t.Error("not begun in the end")
	}
}

// A request that is complete is nowhere kept, whether it was carried out or flushed.
func TestSlotsAreReleased(t *testing.T) {
	for name, end := range map[string]func(p *peer){
		"carried out": func(p *peer) { p.output() },
		"flushed":     func(p *peer) { p.modify(Error) },
	} {
		p := initiator(t, func(s *setup) { s.SendDepth = 1 }) // the next request is in the same slot
		w := work(1, OpSend, all(p.region(make([]byte, 10), 0), 10))
		w.Cookie = p
		p.post(w)
		end(p)
		if e := p.Machine.sq.Add(); e.Cookie != nil || e.SGL.few != [fewSGE]SGE{} || len(p.done) != 1 {
			t.Errorf("%s: %+v is kept", name, e.SendWork)
		}
	}
}

// Messages are counted by their last segments, bytes by all, in either direction.
func TestStats(t *testing.T) {
	p := initiator(t)
	r := p.region(numbered(3000), remoteAll)
	p.post(work(1, OpSend, all(r, 3000)))
	p.output()
	p.send(write(r.STag(), 0, []byte("abc")).more(), write(r.STag(), 3, []byte("de")))
	s := p.Machine.Stats()
	if s.Writes != 1 || s.AlignedWrites != 0 {
		t.Errorf("%d writes, of which %d were aligned, without an EMSS", s.Writes, s.AlignedWrites)
	}
	if s.Sent[rdmap.OpSend].Messages != 1 || s.Sent[rdmap.OpSend].Bytes != 3000 || s.SentFPDUs != 3 {
		t.Errorf("sent %d messages, %d bytes, %d FPDUs",
			s.Sent[rdmap.OpSend].Messages, s.Sent[rdmap.OpSend].Bytes, s.SentFPDUs)
	}
	if s.Received[rdmap.OpWrite].Messages != 1 || s.Received[rdmap.OpWrite].Bytes != 5 || s.RecvFPDUs != 2 {
		t.Errorf("received %d messages, %d bytes, %d FPDUs",
			s.Received[rdmap.OpWrite].Messages, s.Received[rdmap.OpWrite].Bytes, s.RecvFPDUs)
	}
}

// A connection that is lost before the peer's first FPDU, after startup frames of different
// revisions, has them in its error: another one, or one that was being closed, has not.
func TestLostAfterRevisions(t *testing.T) {
	for _, c := range []struct {
		change  []func(*setup)
		closing bool
		want    bool
	}{
		{[]func(*setup){version0, revisions(0, 1)}, false, true},
		{[]func(*setup){version0, revisions(0, 1)}, true, false},
		{nil, false, false},
		{nil, true, false},
	} {
		p := initiator(t, c.change...)
		if c.closing {
			p.modify(Closing)
		}
		p.Machine.Failed(p.clock, errReset)
		p.collectOutputs()
		if got := strings.Contains(p.Machine.Cause().Error(),
			"before the peer's first FPDU; its startup frame was of revision"); got != c.want {
			t.Errorf("closing %t: %v", c.closing, p.Machine.Cause())
		}
	}
}
