package driver

import (
	"errors"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/reclaim"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A setup is what one end of a connection is made with. Tests change what matters to them.
type setup struct {
	machine engine.Config
	params  engine.Params
	conn    Config
	called  func(what string) // is called by each method of the QP's, if it is set
}

const (
	testPD     = 7
	testStream = 70
)

// newSetup returns that of an end whose peer sends nothing first.
func newSetup(role mpa.Role) *setup {
	s := new(setup)
	table := memory.NewTable()
	table.AddStream(testPD)
	s.machine = engine.Config{
		SendDepth: 128, RecvDepth: 128, Linger: 100 * time.Millisecond,
		CloseTimeout: 5 * time.Second, CloseLimit: time.Minute,
		Memory: memory.Domain{Table: table, PD: testPD, Stream: testStream},
	}
	s.params.Negotiated = mpa.Negotiated{Role: role, DDPVersion: 1, RDMAPVersion: 1, CRC: true}
	s.params.SendFirst = role == mpa.RoleInitiator
	s.params.ORD, s.params.IRD = 16, 16
	return s
}

// patient is newSetup of an Initiator whose close may take as long as a test.
func patient() *setup {
	s := newSetup(mpa.RoleInitiator)
	s.machine.CloseTimeout, s.machine.CloseLimit, s.machine.HalfClose = time.Hour, -1, true
	return s
}

// peerToPeer has the Initiator send an RTR indication.
func (s *setup) peerToPeer() *setup {
	s.params.PeerToPeer, s.params.RTR = true, mpa.RTRWrite
	return s
}

// An end is one end of a connection, with its QP.
type end struct {
	*Conn
	*owner
	testing.TB
	table    *memory.Table
	unpolled Unpolled
	spare    reclaim.Reclaimer
}

// config completes the settings of a Conn.
func (s *setup) config(t testing.TB) (*end, *Config) {
	e := &end{TB: t, table: s.machine.Memory.Table, owner: newOwner()}
	e.owner.unpolled, e.owner.called = &e.unpolled, s.called
	cfg := s.conn
	if o, ok := cfg.Owner.(*strict); ok {
		o.unpolled = &e.unpolled
	} else {
		cfg.Owner = e.owner
	}
	cfg.SendDepth, cfg.RecvDepth = s.machine.SendDepth, s.machine.RecvDepth
	cfg.CloseTimeout, cfg.CloseLimit = s.machine.CloseTimeout, s.machine.CloseLimit
	cfg.RNR = s.machine.RNR != engine.RNR{}
	cfg.ErrNoRTR, cfg.ErrIdle = errNoRTR, errIdle
	cfg.Unpolled, cfg.Born, cfg.Reclaimer = &e.unpolled, new(time.Now().Add(-time.Hour)), &e.spare
	return e, &cfg
}

// prepared returns an end on a connection that is not started, and its Machine.
func (s *setup) prepared(t testing.TB, nc net.Conn) (*end, *engine.Machine) {
	t.Helper()
	e, cfg := s.config(t)
	c := tcp.New(nc)
	e.Conn = New(c, true, cfg)
	p := s.params
	l := e.Limits(p.MarkersSend)
	p.MULPDU, p.EMSS, p.Record = l.MULPDU, l.AlignedTo, l.Record
	p.TellsEnd = c.TellsEnd()
	m := engine.New(s.machine)
	testrig.Must(t, m.Connect(&p))
	return e, m
}

// on returns an end that runs on a connection. It is aborted when the test is over.
func (s *setup) on(t testing.TB, nc net.Conn) *end {
	t.Helper()
	e, m := s.prepared(t, nc)
	e.run(m)
	return e
}

// over is on for a stream of whole segments.
func (s *setup) over(t testing.TB, stream Stream) *end {
	t.Helper()
	e, cfg := s.config(t)
	e.Conn = NewWhole(stream, stream, cfg)
	p := s.params
	p.MULPDU, p.Layer, p.First = e.Limits(false).MULPDU, engine.LayerMessages, 1
	p.Ahead = engine.Ahead{Segments: 16, Bytes: 64 << 10}
	m := engine.New(s.machine)
	testrig.Must(t, m.Connect(&p))
	e.run(m)
	return e
}

func (e *end) run(m *engine.Machine) {
	e.owner.conn.Store(e.Conn)
	e.Start(m)
	e.Cleanup(func() {
		e.Abort(engine.ErrAborted)
		if e.cfg.Owner == e.owner {
			e.awaitEnd()
		}
	})
}

// receiver is that of the connection, which is over TCP.
func (e *end) receiver() receiver { return receiver{e.Conn, e.tcp} }

// awaitEnd waits for the end of the connection, and returns it.
func (e *end) awaitEnd() *End {
	e.Helper()
	select {
	case <-e.over:
		return e.ended()
	case <-testrig.Within(e).Done():
		e.Fatal("the connection does not end")
		return nil
	}
}

// sockets returns the two ends of a TCP connection.
func sockets(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	x, y, err := testrig.TCPPair(t.Context())
	testrig.Must(t, err)
	t.Cleanup(func() { _, _ = x.Close(), y.Close() })
	return x.(*net.TCPConn), y.(*net.TCPConn)
}

// pair returns an Initiator and a Responder over TCP.
func pair(t testing.TB) (ini, res *end) {
	t.Helper()
	a, b := sockets(t)
	return newSetup(mpa.RoleInitiator).peerToPeer().on(t, a), newSetup(mpa.RoleResponder).peerToPeer().on(t, b)
}

// inMemory is pair over a connection in memory, for virtual time.
func inMemory(t testing.TB) (ini, res *end) {
	t.Helper()
	a, b := testrig.Pipe("ini", "res")
	return newSetup(mpa.RoleInitiator).peerToPeer().on(t, a), newSetup(mpa.RoleResponder).peerToPeer().on(t, b)
}

// region registers memory of the end's.
func (e *end) region(buf []byte, a memory.Access) *memory.Region {
	e.Helper()
	r, err := e.table.Register(buf, memory.Options{Access: a, PD: testPD})
	testrig.Must(e, err)
	return r
}

// listOf is a list of one element, the first n bytes of a region.
func listOf(r *memory.Region, n int) (l engine.SGL) {
	l.Make(1)[0] = engine.SGE{Region: r, Length: n, Term: r.Term()}
	return l
}

// post posts a request, which is to be taken.
func (e *end) post(w engine.SendWork) {
	e.Helper()
	testrig.Must(e, e.PostSend(&w, 0, false))
}

// receive posts a receive of no bytes.
func (e *end) receive(id uint64) {
	e.Helper()
	testrig.Must(e, e.PostReceive(&engine.RecvWork{ID: id}))
}

// emptyWrite is a Write of nothing, of whose completion nobody hears.
func emptyWrite() engine.SendWork { return engine.SendWork{Op: engine.OpWrite, Unsignaled: true} }

// settled waits until nothing is left to send, and no goroutine that would send it: one that hands up looks for more
// to send after that.
func (e *end) settled() {
	e.Helper()
	e.await("sending to end", func() bool {
		e.Conn.mu.Lock()
		defer e.Conn.mu.Unlock()
		n, _ := e.machine.Outstanding()
		return n == 0 && !e.machine.Pending() && e.sender.state == noSender && !e.sender.writing && !e.up.busy
	})
}

// await waits for something that is to come soon.
func (e *end) await(what string, there func() bool) {
	e.Helper()
	for ctx := testrig.Within(e); !there(); runtime.Gosched() {
		if ctx.Err() != nil {
			e.Fatalf("waited in vain for %s", what)
		}
	}
}

// An owner is the QP of a test's connection. It keeps what it is told.
type owner struct {
	conn     atomic.Pointer[Conn]
	unpolled *Unpolled         // whose completions count as polled at once
	waited   bool              // what Completed returns
	awaited  atomic.Bool       // what Awaited returns
	received atomic.Int64      // receives that were completed
	settled  [2]atomic.Int64   // calls of Settled, and those of who receives
	called   func(what string) // setup.called
	over     chan struct{}     // closed by Ended
	mu       sync.Mutex        // guards what follows
	heard    int
	done     []engine.Completion
	causes   []error // of done
	notices  []engine.Notice
	end      *End
	late     []string // calls after Ended
}

func newOwner() *owner { return &owner{over: make(chan struct{})} }

// note begins each call of an owner's.
func (o *owner) note(what string) {
	if o.called != nil {
		o.called(what)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		o.late = append(o.late, what)
	}
}

func (o *owner) Heard() {
	o.note("Heard")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.heard++
}

func (o *owner) Completed(done []engine.Completion, cause error) (waited bool) {
	o.note("Completed")
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range done {
		o.done, o.causes = append(o.done, c), append(o.causes, cause)
		switch {
		case c.Op == engine.OpReceive:
			o.received.Add(1)
			o.unpolled.Recvs.Add(-1)
		default:
			o.unpolled.Sends.Add(-1)
		}
	}
	return o.waited
}

func (o *owner) Noticed(n *engine.Notice, _ error) {
	o.note("Noticed")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notices = append(o.notices, *n)
}

func (o *owner) Ended(e *End) {
	o.note("Ended")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end = e
	close(o.over)
}

func (o *owner) Settled(receiving bool) {
	if receiving {
		o.settled[1].Add(1)
	} else {
		o.settled[0].Add(1)
	}
	if o.called != nil {
		o.called("Settled")
	}
}

func (o *owner) Awaited() bool { return o.awaited.Load() }

// ended returns the End; nil: not yet.
func (o *owner) ended() *End {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end
}

// completions returns those so far.
func (o *owner) completions() []engine.Completion {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.done)
}

// noticed reports whether a notice of a kind has come.
func (o *owner) noticed(kind engine.NoticeKind) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.notices, func(n engine.Notice) bool { return n.Kind == kind })
}

// awaitCompletions waits for so many, and returns all.
func (e *end) awaitCompletions(n int) []engine.Completion {
	e.Helper()
	e.await("completions", func() bool { return len(e.completions()) >= n })
	return e.completions()
}

// Errors of timeouts, in place of the QP's.
var (
	errNoRTR = errors.New("no RTR indication")
	errIdle  = errors.New("idle")
)
