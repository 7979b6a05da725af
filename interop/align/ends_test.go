//go:build interop && linux

package align_test

import (
	"bytes"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

func testPort(n uint16) string { return strconv.Itoa(int(n)) }

// listen listens in B.
func (l *link) listen(t testing.TB) (ln net.Listener) {
	t.Helper()
	testrig.Must(t, l.b.do(func() (err error) {
		ln, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", addrB+":0")
		return err
	}))
	t.Cleanup(func() { ln.Close() })
	return ln
}

// An end is one of a connection, with the memory that it sends from and receives into.
type end struct {
	t testing.TB
	*iwarp.QP
	buf []byte
	mr  *iwarp.MR
}

// newEnd registers memory for an end.
func newEnd(t testing.TB, qp *iwarp.QP, n int) *end {
	e := &end{t: t, QP: qp, buf: make([]byte, n)}
	var err error
	e.mr, err = qp.PD().Register(e.buf, iwarp.LocalWrite|iwarp.RemoteRead|iwarp.RemoteWrite)
	testrig.Must(t, err)
	return e
}

// depth is that of the queues: each workload has less outstanding.
const depth = 1024

// connect connects an end in A with one in B, each with n bytes of memory.
func (l *link) connect(t testing.TB, markers bool, fpdus iwarp.FPDUs, n int) (a, b *end) {
	t.Helper()
	cfg := iwarp.QPConfig{FPDUs: fpdus, SendDepth: depth, RecvDepth: depth}
	ln := l.listen(t)
	served := make(chan *iwarp.QP, 1)
	go func() {
		c, err := ln.Accept()
		if err == nil {
			var req *iwarp.Request
			if req, err = new(iwarp.ListenConfig).Respond(t.Context(), c, nil); err == nil {
				var qp *iwarp.QP
				qp, err = req.Accept(t.Context(), iwarp.AcceptConfig{QP: cfg, MPA: mpa.Answer{Markers: markers}})
				served <- qp
			}
		}
		if err != nil {
			t.Error(err)
			close(served)
		}
	}()
	var qp *iwarp.QP
	testrig.Must(t, l.a.do(func() (err error) {
		d := iwarp.Dialer{QP: cfg, MPA: mpa.Offer{Markers: markers}}
		qp, err = d.Dial(t.Context(), "tcp", ln.Addr().String())
		return err
	}))
	peer := <-served
	if peer == nil {
		t.FailNow()
	}
	return newEnd(t, qp, n), newEnd(t, peer, n)
}

// port is that of the end.
func (e *end) port() uint16 { return uint16(e.LocalAddr().(*net.TCPAddr).Port) }

// fill gives the memory other bytes.
func (e *end) fill(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range e.buf {
		e.buf[i] = byte(r.Uint32())
	}
}

// await takes completions of requests.
func await(t testing.TB, cq *iwarp.CQ, n int) {
	t.Helper()
	for range n {
		wc, err := cq.Next(t.Context())
		testrig.Must(t, err)
		testrig.Must(t, wc.Err())
	}
}

// A workload moves all of one end's memory to the other's.
type workload struct {
	name string
	// back tells that most bytes go from B to A.
	back bool
	run  func(a, b *end)
}

var workloads = []workload{
	{"Write 1 MiB", false, writes},
	{"Read 64 KiB", true, reads},
	{"Send 64 B to 64 KiB", false, sends},
}

// writes are of 1 MiB, the last of them followed by a Send.
func writes(a, b *end) {
	a.t.Helper()
	const size = 1 << 20
	receive(b, b.SGE(0, 0))
	n := 0
	for at := 0; at < len(a.buf); at += size {
		testrig.Must(a.t, a.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{a.SGE(at, size)},
			Remote: b.mr.Remote(at)}))
		n++
	}
	testrig.Must(a.t, a.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}))
	await(a.t, a.SendCQ(), n+1)
	await(b.t, b.RecvCQ(), 1)
}

// SGE is a part of the end's memory.
func (e *end) SGE(at, n int) iwarp.SGE { return e.mr.Slice(at, n) }

// receive posts a receive.
func receive(e *end, s iwarp.SGE) {
	e.t.Helper()
	testrig.Must(e.t, e.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{s}}))
}

// reads are of 64 KiB, as many at once as the depth agreed on allows.
func reads(a, b *end) {
	a.t.Helper()
	const size = 64 << 10
	n := 0
	for at := 0; at < len(a.buf); at += size {
		testrig.Must(a.t, a.PostSend(&iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{a.SGE(at, size)},
			Remote: b.mr.Remote(at)}))
		n++
	}
	await(a.t, a.SendCQ(), n)
}

// sends are of 64 bytes to 64 KiB, as many of each power of two.
func sends(a, b *end) {
	a.t.Helper()
	r := rand.New(rand.NewPCG(64, 64<<10))
	for at := 0; at < len(a.buf); {
		n := 0
		var ends []iwarp.SGE
		for ; at < len(a.buf) && n < depth/2; n++ {
			size := 64 << r.IntN(10)
			size = min(size+r.IntN(size), 64<<10, len(a.buf)-at)
			receive(b, b.SGE(at, size))
			ends = append(ends, a.SGE(at, size))
			at += size
		}
		for _, s := range ends {
			testrig.Must(a.t, a.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{s}}))
		}
		await(a.t, a.SendCQ(), n)
		await(b.t, b.RecvCQ(), n)
	}
}

// same expects the same bytes at both ends.
func same(a, b *end) {
	a.t.Helper()
	if !bytes.Equal(a.buf, b.buf) {
		a.t.Error("other bytes have arrived than were sent")
	}
}

// closeBoth closes both ends in order.
func closeBoth(a, b *end) {
	a.t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	testrig.Must(a.t, a.Close())
	testrig.Must(a.t, <-closed)
}
