package target_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

func TestMain(m *testing.M) { testrig.Main(m) }

var must = testrig.Must

const (
	nqn     = "nqn.2026-11.example:disk"
	hostNQN = "nqn.2026-11.example:host"
)

// A rig is a Target, and a way to connect to it over a link in memory.
type rig struct {
	t      testing.TB
	target *Target
	under  *testrig.Listener
	disk   *Memory
	rnic   *iwarp.RNIC                                  // the target's
	wrap   func(host, target *testrig.Conn) (a, b conn) // if it is set, connections pass through it
}

// conn is a connection in memory, or one around it.
type conn interface {
	net.Conn
	CloseWrite() error
	SetLinger(int) error
}

// newRig serves a disk of 4 MiB, with blocks of 512 bytes.
func newRig(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	disk, err := NewMemory(4<<20, 512)
	must(t, err)
	cfg := Config{NQN: nqn, Namespaces: []Namespace{{Backend: disk}}}
	if change != nil {
		change(&cfg)
	}
	target, err := New(cfg)
	must(t, err)
	r := &rig{t: t, target: target, under: testrig.NewListener("target"), disk: disk}
	ln := new(iwarp.ListenConfig).NewListener(r.under)
	r.rnic = ln.RNIC()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = target.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		<-served
		_ = target.Shutdown(ctx) // aborts at once
		_ = ln.Close()
		_ = ln.RNIC().Close()
	})
	return r
}

// A wire is a host's end of a queue, with memory for the target to reach.
type wire struct {
	t      testing.TB
	qid    uint16
	qp     *iwarp.QP
	cq     *iwarp.CQ
	conn   *deaf
	caps   *iwarp.MR // where completions arrive
	memory *iwarp.MR
	ctrl   uint16
	host   byte // of whom
	lax    bool // completions that nobody waits for are in order

	mu   sync.Mutex
	last uint16
	came map[uint16]chan completion
	over chan struct{}
}

// A completion is what came of a command, with the STag that it has invalidated.
type completion struct {
	capsule.Completion
	invalidated uint32
}

const memoryLen = 1 << 20

// dial connects a queue of so many entries.
func (r *rig) dial(qid uint16, depth int) *wire {
	r.t.Helper()
	w, err := r.try(requestOf(qid, depth), offer)
	must(r.t, err)
	return w
}

func (r *rig) try(private []byte, offer mpa.Offer) (*wire, error) {
	r.t.Helper()
	end, theirs := testrig.Pipe("host", "target")
	a, b := conn(end), conn(theirs)
	if r.wrap != nil {
		a, b = r.wrap(end, theirs)
	}
	must(r.t, r.under.Offer(r.t.Context(), b))
	ours := &deaf{conn: a}
	w := &wire{t: r.t, conn: ours, came: map[uint16]chan completion{}, over: make(chan struct{}), host: 1}
	if q, err := ulpdata.ParseNVMeRequest(private); err == nil {
		w.qid = q.QID
	}
	offer.PrivateData, offer.ClientServer = private, true
	d := iwarp.Dialer{MPA: offer, NoReads: offer.IRD == 0, Prepare: w.prepare}
	_, err := d.Initiate(testrig.Within(r.t), ours, nil)
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	go w.run()
	r.t.Cleanup(func() { _ = w.qp.Abort(); <-w.over; _ = w.qp.PD().RNIC().Close() })
	return w, nil
}

const receives = 64

func (w *wire) prepare(qp *iwarp.QP) (err error) {
	w.qp, w.cq = qp, qp.RecvCQ()
	if w.caps, err = qp.PD().Register(make([]byte, receives*capsule.CompletionLen), iwarp.LocalWrite); err != nil {
		return err
	}
	if w.memory, err = qp.PD().Register(make([]byte, memoryLen), iwarp.RemoteRead|iwarp.RemoteWrite); err != nil {
		return err
	}
	for i := range receives {
		if err := w.post(i); err != nil {
			return err
		}
	}
	return nil
}

func (w *wire) post(i int) error {
	return w.qp.PostRecv(&iwarp.RecvWR{ID: uint64(i),
		SGL: []iwarp.SGE{w.caps.Slice(i*capsule.CompletionLen, capsule.CompletionLen)}})
}

// run hands completions to those who wait for them.
func (w *wire) run() {
	defer close(w.over)
	for {
		wc, err := w.cq.Next(context.Background())
		if err != nil {
			return
		}
		if wc.Op != iwarp.OpRecv || wc.Status != iwarp.StatusSuccess {
			continue
		}
		at := int(wc.ID) * capsule.CompletionLen
		c, err := capsule.ParseCompletion(w.caps.Bytes()[at:][:wc.Length])
		if err != nil {
			w.t.Error(err)
			continue
		}
		_ = w.post(int(wc.ID))
		w.mu.Lock()
		to := w.came[c.ID]
		delete(w.came, c.ID)
		w.mu.Unlock()
		if to == nil && w.lax {
			continue
		}
		if to == nil {
			w.t.Errorf("a completion that nobody waits for: %v", c)
			continue
		}
		to <- completion{c, wc.Invalidated}
	}
}

// send sends a command, with data in the capsule, and returns where its completion will be.
func (w *wire) send(c capsule.Command, inCapsule []byte) chan completion {
	w.t.Helper()
	to := make(chan completion, 1)
	w.mu.Lock()
	w.last++
	c.ID = w.last
	w.came[c.ID] = to
	w.mu.Unlock()
	w.sendBytes(append(c.Append(nil), inCapsule...))
	return to
}

// sendBytes sends anything at all.
func (w *wire) sendBytes(data []byte) {
	mr, err := w.qp.PD().Register(data, 0)
	if err != nil {
		return // the connection has ended
	}
	_ = w.qp.Send(testrig.Within(w.t), mr.Slice(0, len(data)))
	_ = mr.Deregister()
}

// do sends a command and waits for its completion. ok is false if the connection has ended.
func (w *wire) try(c capsule.Command, inCapsule []byte) (got completion, ok bool) {
	w.t.Helper()
	to := w.send(c, inCapsule)
	select {
	case got = <-to:
		return got, true
	case <-w.over:
	}
	select {
	case got = <-to:
		return got, true
	default:
		return got, false
	}
}

func (w *wire) do(c capsule.Command, inCapsule []byte) completion {
	w.t.Helper()
	got, ok := w.try(c, inCapsule)
	if !ok {
		w.t.Fatalf("the connection ended: %v", w.qp.Err())
	}
	return got
}

// want sends a command that is to end with a status.
func (w *wire) want(status capsule.Status, c capsule.Command, inCapsule []byte) completion {
	w.t.Helper()
	got := w.do(c, inCapsule)
	if got.Status != status {
		w.t.Fatalf("%v: %v, not %v", c, got.Status, status)
	}
	return got
}

// keyed is memory of the host's.
func (w *wire) keyed(off, n int) capsule.SGL {
	at := w.memory.Remote(off)
	return capsule.SGL{Type: capsule.SGLKeyed, Address: at.TO, Length: uint32(n), Key: at.STag}
}

// put puts bytes into the host's memory.
func (w *wire) put(data []byte, off int) capsule.SGL {
	w.t.Helper()
	_, err := w.memory.WriteAt(data, int64(off))
	must(w.t, err)
	return w.keyed(off, len(data))
}

// get returns what is in the host's memory.
func (w *wire) get(off, n int) []byte {
	w.t.Helper()
	b := make([]byte, n)
	_, err := w.memory.ReadAt(b, int64(off))
	must(w.t, err)
	return b
}

// data are those of a Connect.
func (w *wire) data(ctrl uint16, subsystem string) capsule.ConnectData {
	return capsule.ConnectData{HostID: [16]byte{w.host}, ControllerID: ctrl, SubsystemNQN: subsystem, HostNQN: hostNQN}
}

// connect makes the controller.
func (w *wire) connect(keepAlive uint32) *wire {
	w.t.Helper()
	s := w.put(w.data(capsule.AnyController, nqn).Append(nil), 0)
	w.ctrl = uint16(w.want(capsule.Success, capsule.Connect{SGL: s, SQSize: 31,
		KeepAlive: keepAlive}.Command(), nil).Result)
	return w
}

// enable has the controller get ready.
func (w *wire) enable() *wire {
	w.t.Helper()
	w.want(capsule.Success, capsule.PropertyAccess{Property: capsule.PropertyCC,
		Value: uint64(capsule.ConfigurationEnabled)}.Set(), nil)
	return w
}

// admin is an Admin Queue with an enabled controller.
func (r *rig) admin() *wire {
	r.t.Helper()
	return r.dial(0, 32).connect(0).enable()
}

// io adds an I/O queue, whose Connect has its data in the capsule, as Linux's.
func (r *rig) io(a *wire, qid uint16, depth int) *wire {
	r.t.Helper()
	w := r.dial(qid, depth)
	w.ctrl, w.host = a.ctrl, a.host
	n := capsule.Connect{SGL: capsule.SGL{Type: capsule.SGLOffset, Length: capsule.ConnectDataLen}, QID: qid,
		SQSize: uint16(depth - 1)}
	got := w.want(capsule.Success, n.Command(), w.data(a.ctrl, nqn).Append(nil))
	if got.Result != uint64(a.ctrl) {
		r.t.Fatalf("controller %d, not %d", got.Result, a.ctrl)
	}
	return w
}

// page asks for an Identify page.
func (w *wire) page(i capsule.Identify) []byte {
	w.t.Helper()
	i.SGL = w.keyed(0, capsule.PageLen)
	w.want(capsule.Success, i.Command(), nil)
	return w.get(0, capsule.PageLen)
}

// same compares bytes.
func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: %d bytes, not as they should be", what, len(got))
	}
}

// own is memory that the peer of this connection, and no other, may invalidate.
func (w *wire) own(data []byte) *iwarp.MR {
	w.t.Helper()
	mr, err := w.qp.PD().RegisterOptions(data, iwarp.MROptions{Access: iwarp.RemoteRead | iwarp.RemoteWrite,
		QP: w.qp})
	must(w.t, err)
	return mr
}

// offer is that of a host, and requestOf its private data.
var offer = mpa.Offer{IRD: 16}

func requestOf(qid uint16, depth int) []byte {
	return ulpdata.NVMeRequest{QID: qid, HRQSize: uint16(depth), HSQSize: uint16(depth - 1)}.Append(nil)
}

// deaf is a connection that drops what comes, if it is told to.
type deaf struct {
	conn
	is atomic.Bool
}

func (d *deaf) Read(b []byte) (int, error) {
	for {
		n, err := d.conn.Read(b)
		if err != nil || !d.is.Load() {
			return n, err
		}
	}
}
