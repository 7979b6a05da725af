package host_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/nvmf/host"
)

func TestMain(m *testing.M) { testrig.Main(m) }

const (
	diskBlocks = 4096
	diskShift  = 9
	nqn        = "nqn.2026-11.example:disk"
)

// A peer is a target that is played: it answers as a controller with a disk in memory does, but for what a test has it
// do.
type peer struct {
	t  testing.TB
	ln *testrig.Listener

	controller capsule.IdentifyController
	namespace  capsule.IdentifyNamespace
	uuid       [16]byte
	caps       capsule.Capabilities
	queues     capsule.Queues
	private    []byte // of the Reply
	reject     []byte // private data of a rejection, in place of it
	keepKeys   bool   // the peer leaves invalidation to the host

	// spoil gets each completion before it is sent, and what it invalidates, and may change them. It returns false to
	// send nothing.
	spoil func(q *peerQueue, cmd *capsule.Command, a *answer) bool

	mu          sync.Mutex
	disk        []byte
	qps         []*peerQueue // every connection that there was
	connects    []capsule.ConnectData
	seen        []capsule.Command // I/O commands, and admin commands but for those of the bring-up
	invalidated int
}

// An answer is what a peer sends for a command.
type answer struct {
	capsule.Completion
	invalidate uint32
	// page is what a command that reads from the controller gets.
	page []byte
	// bytes is the whole capsule, if the test wants another than that of the completion.
	bytes []byte
	// twice sends it twice.
	twice bool
}

type peerQueue struct {
	p  *peer
	id uint16
	qp *iwarp.QP
	mr *iwarp.MR // receives
	io sync.Mutex
}

const peerCapsule = 64 + 8192

func newPeer(t testing.TB) *peer {
	p := &peer{
		t: t, ln: testrig.NewListener("target"), disk: make([]byte, diskBlocks<<diskShift),
		controller: capsule.IdentifyController{
			Model: "played", ControllerID: 7, Version: capsule.Version13, Type: capsule.ControllerIO,
			KeepAlive: 1, MaxData: 3,
			QueueEntries: capsule.QueueEntries, MaxCommands: 16, Namespaces: 1,
			Optional:   capsule.HasDatasets | capsule.HasWriteZeroes,
			SGLs:       capsule.SGLSupported | capsule.SGLKeyedSupported | capsule.SGLOffsetSupported,
			CommandLen: 260, ResponseLen: 1, MaxDescriptors: 1,
		},
		namespace: capsule.IdentifyNamespace{Size: diskBlocks, Capacity: diskBlocks,
			BlockShift: diskShift, NGUID: [16]byte{1}},
		uuid: [16]byte([]byte("0123456789abcdef")),
		caps: capsule.NewCapabilities(64, 10), queues: capsule.NewQueues(2),
		private: ulpdata.NVMeReply{CRQSize: 32}.Append(nil),
	}
	return p
}

// startServing accepts connections until the test ends.
func (p *peer) startServing() *peer {
	ln := new(iwarp.ListenConfig).NewListener(p.ln)
	ctx, cancel := context.WithCancel(context.Background())
	p.t.Cleanup(func() { cancel(); _ = ln.Close(); p.cut() })
	go func() {
		for {
			req, err := ln.Accept(ctx)
			if err != nil {
				return
			}
			p.accept(ctx, req)
		}
	}()
	return p
}

// DialContext makes the peer a Stack, which leads to itself.
func (p *peer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	a, b := testrig.Pipe("host", "target")
	return a, p.ln.Offer(ctx, b)
}

// Listen is there for the Stack.
func (p *peer) Listen(context.Context, string, string) (net.Listener, error) { return p.ln, nil }

func (p *peer) accept(ctx context.Context, req *iwarp.Request) {
	if p.reject != nil {
		_ = req.Reject(p.reject)
		return
	}
	hello, err := ulpdata.ParseNVMeRequest(req.PrivateData())
	if err != nil {
		p.t.Errorf("the host's private data: %v", err)
		return
	}
	q := &peerQueue{p: p, id: hello.QID}
	cfg := iwarp.AcceptConfig{
		QP: iwarp.QPConfig{SendDepth: 512, RecvDepth: 256}, MPA: mpa.Answer{PrivateData: p.private}, Prepare: q.prepare,
	}
	if q.qp, err = req.Accept(ctx, cfg); err != nil {
		return
	}
	p.mu.Lock()
	p.qps = append(p.qps, q)
	p.mu.Unlock()
	go q.serve()
}

// cut resets all connections.
func (p *peer) cut() {
	p.mu.Lock()
	qps := slices.Clone(p.qps)
	p.mu.Unlock()
	for _, q := range qps {
		_ = q.qp.Abort()
	}
}

// connections is how many there were.
func (p *peer) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.qps)
}

// diskBytes is the disk.
func (p *peer) diskBytes() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.disk)
}

// commands returns the I/O commands with an opcode, in the order in which they came.
func (p *peer) commands(op capsule.Opcode) (all []capsule.Command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.seen {
		if c.Opcode == op {
			all = append(all, c)
		}
	}
	return all
}

func (q *peerQueue) prepare(qp *iwarp.QP) (err error) {
	const depth = 128
	if q.mr, err = qp.PD().Register(make([]byte, depth*peerCapsule), iwarp.LocalWrite); err != nil {
		return err
	}
	for i := range depth {
		if err := qp.PostRecv(&iwarp.RecvWR{ID: uint64(i),
			SGL: []iwarp.SGE{q.mr.Slice(i*peerCapsule, peerCapsule)}}); err != nil {
			return err
		}
	}
	return nil
}

func (q *peerQueue) serve() {
	var wcs [1]iwarp.WC
	for {
		if q.qp.RecvCQ().Poll(wcs[:]) == 0 {
			if q.qp.RecvCQ().Wait(context.Background()) != nil {
				return
			}
			continue
		}
		wc := &wcs[0]
		if wc.Op != iwarp.OpRecv || wc.Status != iwarp.StatusSuccess {
			continue
		}
		b := make([]byte, wc.Length)
		_, _ = q.mr.ReadAt(b, int64(wc.ID)*peerCapsule)
		c, err := capsule.ParseCommand(b)
		if err != nil {
			q.p.t.Errorf("a capsule of the host's: %v", err)
			return
		}
		_ = q.qp.PostRecv(&iwarp.RecvWR{ID: wc.ID, SGL: []iwarp.SGE{q.mr.Slice(int(wc.ID)*peerCapsule, peerCapsule)}})
		go q.carryOut(c, b[capsule.CommandLen:])
	}
}

// carryOut does what the command says, and answers.
func (q *peerQueue) carryOut(c capsule.Command, inline []byte) {
	p := q.p
	a := &answer{Completion: capsule.Completion{ID: c.ID, SQID: q.id}}
	data, ok := q.fetch(&c, inline)
	if !ok {
		return
	}
	if c.SGL.Type == capsule.SGLKeyedInvalidate && c.SGL.Length > 0 && !p.keepKeys {
		a.invalidate = c.SGL.Key
	}
	p.mu.Lock()
	q.execute(&c, data, a)
	spoil := p.spoil
	p.mu.Unlock()
	if spoil != nil && !spoil(q, &c, a) {
		return
	}
	q.answer(&c, a)
}

// fetch returns the data that a command brings along.
func (q *peerQueue) fetch(c *capsule.Command, inline []byte) ([]byte, bool) {
	toController := c.Opcode == capsule.OpFabrics || q.id > 0 &&
		(c.Opcode == capsule.OpWrite || c.Opcode == capsule.OpDatasetManagement)
	switch {
	case c.SGL.Type == capsule.SGLOffset:
		return inline[c.SGL.Address:][:c.SGL.Length], true
	case !toController || c.SGL.Length == 0:
		return nil, true
	}
	b := make([]byte, c.SGL.Length)
	mr, err := q.qp.PD().Register(b, iwarp.LocalWrite)
	if err != nil {
		return nil, false
	}
	defer mr.Deregister()
	q.io.Lock()
	defer q.io.Unlock()
	_, err = q.qp.Read(context.Background(), mr.Slice(0, len(b)), iwarp.Remote{STag: c.SGL.Key, TO: c.SGL.Address})
	return b, err == nil
}

// answer sends the page and the completion.
func (q *peerQueue) answer(c *capsule.Command, a *answer) {
	q.io.Lock()
	defer q.io.Unlock()
	if len(a.page) > 0 {
		mr, err := q.qp.PD().Register(a.page, 0)
		if err != nil {
			return
		}
		defer mr.Deregister()
		if _, err := q.qp.Write(context.Background(), mr.Slice(0, len(a.page)),
			iwarp.Remote{STag: c.SGL.Key, TO: c.SGL.Address}); err != nil {
			return
		}
	}
	if a.bytes == nil {
		a.bytes = a.Append(nil)
	}
	if a.invalidate != 0 {
		q.p.mu.Lock()
		q.p.invalidated++
		q.p.mu.Unlock()
	}
	_ = q.qp.PostSend(&iwarp.SendWR{Inline: a.bytes, Invalidate: a.invalidate, Unsignaled: true})
	if a.twice {
		_ = q.qp.PostSend(&iwarp.SendWR{Inline: a.bytes, Unsignaled: true})
	}
}

// dialer leads to the peer.
func (p *peer) dialer() *host.Dialer {
	return &host.Dialer{RDMA: iwarp.Dialer{Stack: p}}
}

// dial connects to the peer, for as long as the test lasts.
func (p *peer) dial(d *host.Dialer) *host.Controller {
	p.t.Helper()
	c, err := d.Dial(testrig.Within(p.t), "tcp", "target:4420", nqn)
	testrig.Must(p.t, err)
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// disk connects and returns the namespace.
func (p *peer) open(d *host.Dialer) (*host.Controller, *host.Namespace) {
	p.t.Helper()
	c := p.dial(d)
	n, err := c.Namespace(testrig.Within(p.t), 1)
	testrig.Must(p.t, err)
	return c, n
}
