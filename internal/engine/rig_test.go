package engine

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// What every QP of these tests has, unless a test says otherwise.
const (
	testPD     = 7
	testStream = 70
	testMULPDU = 1444 // Ethernet's EMSS of 1450 bytes, say
	closeTime  = 5 * time.Second
)

// remoteAll is every right a peer can have.
const remoteAll = memory.LocalWrite | memory.RemoteWrite | memory.RemoteRead

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A setup is what a QP is created and connected with; tests change what matters
// to them.
type setup struct {
	Config
	Params
	table *memory.Table
}

func newSetup(role mpa.Role) *setup {
	s := &setup{table: memory.NewTable()}
	s.Config = Config{
		SendDepth: 16, RecvDepth: 16, CloseTimeout: closeTime,
		Memory: memory.Domain{Table: s.table, PD: testPD, Stream: testStream},
	}
	s.Negotiated = mpa.Negotiated{Role: role, DDPVersion: 1, RDMAPVersion: 1, CRC: true,
		SendFirst: role == mpa.RoleInitiator}
	s.MULPDU, s.ORD, s.IRD = testMULPDU, 4, 4
	return s
}

// A host is a QP with its memory, driven as the driver does it but without
// goroutines, and what it has told its consumer.
type host struct {
	rapid.TB
	Machine *Machine
	now     *time.Time
	table   *memory.Table
	g       *Gather

	unread  []byte          // bytes received that Input did not take
	chunk   func(n int) int // how many of n bytes the LLP takes at once; nil: all
	window  int             // bytes that the LLP still takes; negative: any number
	done    []Completion    // in order
	notices []Notice        // in order
	spare   []Completion    // memory for Completions
	states  []State         // that it was told of, in order
	llp     []LLP           // in order
}

// gathers are used in turn, as they are large: no test has so many QPs at once,
// and none runs beside another.
var gathers struct {
	all  [8]*Gather
	next int
}

func nextGather() *Gather {
	g := &gathers.all[gathers.next%len(gathers.all)]
	gathers.next++
	if *g == nil {
		*g = NewGather()
	}
	return *g
}

func newHost(t rapid.TB, now *time.Time, s *setup) *host {
	h := &host{TB: t, now: now, table: s.table, g: nextGather(), window: -1}
	h.Machine = New(s.Config)
	s.table.AddStream(s.Memory.PD)
	return h
}

// connect puts the QP into RTS.
func (h *host) connect(s *setup) {
	h.Helper()
	if err := h.Machine.Connect(&s.Params); err != nil {
		h.Fatal(err)
	}
	h.collectOutputs()
}

// region registers n bytes, zero or numbered, for the QP's Protection Domain.
func (h *host) region(buf []byte, a memory.Access) *memory.Region {
	return h.regionOf(buf, memory.Options{Access: a, PD: testPD})
}

func (h *host) regionOf(buf []byte, o memory.Options) *memory.Region {
	h.Helper()
	r, err := h.table.Register(buf, o)
	if err != nil {
		h.Fatal(err)
	}
	return r
}

var numbered = testrig.Numbered

// post posts to the Send Queue and expects no objection.
func (h *host) post(w SendWork) {
	h.Helper()
	if err := h.Machine.PostSend(&w); err != nil {
		h.Fatalf("post %d: %v", w.ID, err)
	}
	h.collectOutputs()
}

// receive posts a receive into the elements.
func (h *host) receive(id uint64, sgl ...SGE) {
	h.Helper()
	w := RecvWork{ID: id, SGL: listOf(sgl...)}
	if err := h.Machine.PostReceive(&w); err != nil {
		h.Fatalf("post receive %d: %v", id, err)
	}
	h.collectOutputs()
}

// work is a request with the elements as its memory.
func work(id uint64, op Op, sgl ...SGE) SendWork {
	return SendWork{ID: id, Op: op, SGL: listOf(sgl...)}
}

func listOf(sgl ...SGE) (l SGL) {
	copy(l.Make(len(sgl)), sgl)
	return l
}

// all is the whole of a region of n bytes.
func all(r *memory.Region, n int) SGE { return SGE{Region: r, Length: n, Term: r.Term()} }

// output has the LLP take what the QP has to send, as the driver does, and
// returns it.
func (h *host) output() []byte {
	h.Helper()
	var out []byte
	for h.Machine.Pending() && h.window != 0 {
		v := h.Machine.Output(*h.now, h.g)
		if len(v) == 0 {
			break
		}
		if slices.ContainsFunc(v, func(b []byte) bool { return len(b) == 0 }) {
			h.Fatal("a record without bytes")
		}
		b := slices.Concat(v...)
		n := h.takes(len(b))
		out = append(out, b[:n]...)
		h.Machine.Sent(*h.now, h.g, n)
	}
	h.checkQuiet()
	if cap(h.g.arena) != GatherArena {
		h.Fatal("more was built than there was room for")
	}
	h.collectOutputs()
	return out
}

func (h *host) takes(n int) int {
	if h.chunk != nil {
		n = min(max(h.chunk(n), 1), n)
	}
	if h.window >= 0 {
		n = min(n, h.window)
		h.window -= n
	}
	return n
}

// checkQuiet finds output that the driver would not have known of: Output gave
// nothing, or Pending said that it would not.
func (h *host) checkQuiet() {
	h.Helper()
	if h.window == 0 || h.Machine.InFlight() {
		return
	}
	if v := h.Machine.Output(*h.now, h.g); len(v) > 0 {
		h.Fatalf("%d bytes to be sent that nobody was told of", len(slices.Concat(v...)))
	}
}

// collectOutputs takes over what happened, as the driver does after every call.
func (h *host) collectOutputs() {
	h.spare = h.Machine.Completions(h.spare)
	h.done = append(h.done, h.spare...)
	notices := h.Machine.Notices(nil)
	h.notices = append(h.notices, notices...)
	h.follow(notices)
	if l := h.Machine.LLP(); l != Keep {
		h.llp = append(h.llp, l)
	}
}

// follow expects the notices to tell of every change of state, and of none that must not be.
func (h *host) follow(notices []Notice) {
	h.Helper()
	for _, n := range notices {
		if n.Kind != NoticeState {
			continue
		}
		if n.From != h.told() || !Legal(n.From, n.To) {
			h.Fatalf("told of a change from %v to %v in state %v", n.From, n.To, h.told())
		}
		h.states = append(h.states, n.To)
	}
	if h.told() != h.Machine.State() {
		h.Fatalf("nobody was told of a change from %v to %v", h.told(), h.Machine.State())
	}
}

// told is the state that the QP is in by what it has told.
func (h *host) told() State {
	if len(h.states) == 0 {
		return Idle
	}
	return h.states[len(h.states)-1]
}

// wantStates expects the states that the QP has been in, but for Idle at first.
func (h *host) wantStates(want ...State) {
	h.Helper()
	if !slices.Equal(h.states, want) {
		h.Fatalf("was in states %v, want %v", h.states, want)
	}
}

// input hands bytes in, after those not taken before. Input may write to what
// it is given, and must not once it has returned, nor look at it.
func (h *host) input(b []byte) {
	h.unread = append(h.unread, b...)
	work := bytes.Clone(h.unread)
	n := h.Machine.Input(*h.now, work)
	if n < len(work) && !bytes.Equal(work[n:], h.unread[n:]) {
		h.Fatal("bytes that were not taken have changed")
	}
	clear(work)
	h.unread = h.unread[n:]
	h.collectOutputs()
}

// fin reports the peer's FIN.
func (h *host) fin() {
	h.Machine.PeerClosed(*h.now, len(h.unread))
	h.collectOutputs()
}

// modify asks for a transition and expects no objection.
func (h *host) modify(to State) {
	h.Helper()
	if err := h.Machine.Modify(*h.now, to); err != nil {
		h.Fatalf("modify to %v: %v", to, err)
	}
	h.collectOutputs()
}

// closeOrderly is BeginClose.
func (h *host) closeOrderly() {
	h.Machine.BeginClose(*h.now, 0)
	h.collectOutputs()
}

// wantState expects the QP to be in a state.
func (h *host) wantState(s State) {
	h.Helper()
	if h.Machine.State() != s {
		h.Fatalf("in state %v, want %v; cause: %v", h.Machine.State(), s, h.Machine.Cause())
	}
}

// completion expects the next completions, in order.
func (h *host) completion(want ...Completion) {
	h.Helper()
	n := min(len(want), len(h.done))
	if !slices.Equal(want, h.done[:n]) {
		h.Fatalf("completions (-want +got):\n%s", cmp.Diff(want, h.done[:n], cmpopts.EquateEmpty()))
	}
	h.done = h.done[n:]
}

// noCompletion expects that no completion is left.
func (h *host) noCompletion() {
	h.Helper()
	if len(h.done) > 0 {
		h.Fatalf("completions left: %+v", h.done)
	}
}

// wantLLP expects what was to become of the connection since the last call.
func (h *host) wantLLP(want ...LLP) {
	h.Helper()
	if !slices.Equal(h.llp, want) {
		h.Fatalf("the connection was to be %v, want %v", h.llp, want)
	}
	h.llp = nil
}

// wantNotices expects the kinds of the notices since the last call, state
// changes left out.
func (h *host) wantNotices(want ...NoticeKind) {
	h.Helper()
	var got []NoticeKind
	for _, n := range h.notices {
		if n.Kind != NoticeState {
			got = append(got, n.Kind)
		}
	}
	if !slices.Equal(got, want) {
		h.Fatalf("notices %v, want %v; cause: %v", got, want, h.Machine.Cause())
	}
	h.notices = nil
}

// success is the completion of a request that was carried out.
func success(id uint64, op Op, length int) Completion {
	return Completion{ID: id, Op: op, Length: uint32(length)}
}

// failed is the completion of one that was not.
func failed(id uint64, op Op, s Status) Completion { return Completion{ID: id, Op: op, Status: s} }

func flushed(id uint64, op Op) Completion { return failed(id, op, StatusFlushed) }
