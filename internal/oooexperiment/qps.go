package oooexperiment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/usertcp"
)

// chunk is how many bytes each RDMA Write has, and how many each connection has memory for.
const chunk = 16 << 10

// A qpRun is a Way whose ends are Queue Pairs.
type qpRun struct {
	*run
	from, to *iwarp.RNIC
	memory   *iwarp.MR // of all receivers, a chunk for each
	senders  []*iwarp.QP
	accepted []*iwarp.QP
	conns    []*measuredConn // of those that are accepted
	stack    *measuredStack
}

func runQPs(ctx context.Context, r *run) (*Result, error) {
	q := &qpRun{run: r, from: iwarp.NewRNIC(iwarp.RNICConfig{}),
		to: iwarp.NewRNIC(iwarp.RNICConfig{Markers: r.way.Markers})}
	defer q.from.Close()
	defer q.to.Close()
	q.stack = &measuredStack{Stack: r.to, run: r, conns: make(map[string]*measuredConn)}
	if err := q.connect(ctx); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := q.each(func(i int) error { return q.send(ctx, i) }); err != nil {
		return nil, err
	}
	r.took = time.Since(begun)
	return q.result(), nil
}

// each does something with all connections at the same time.
func (q *qpRun) each(do func(i int) error) error {
	var all sync.WaitGroup
	failed := make([]error, q.cfg.Connections)
	for i := range failed {
		all.Go(func() { failed[i] = do(i) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// connect makes all connections, some at a time.
func (q *qpRun) connect(ctx context.Context) error {
	pd, err := q.to.AllocPD()
	if err != nil {
		return err
	}
	if q.memory, err = pd.Register(make([]byte, q.cfg.Connections*chunk),
		iwarp.RemoteWrite|iwarp.LocalWrite); err != nil {
		return err
	}
	ln, err := (&iwarp.ListenConfig{RNIC: q.to, PD: pd, Stack: q.stack}).Listen(ctx, "tcp4", ":"+port)
	if err != nil {
		return err
	}
	defer ln.Close()
	own, err := q.from.AllocPD()
	if err != nil {
		return err
	}
	return q.connectAll(ctx, &iwarp.Dialer{PD: own, Stack: q.run.from}, ln)
}

// connectAll dials and accepts all connections. If one end fails, the other does not wait for it.
func (q *qpRun) connectAll(ctx context.Context, dialer *iwarp.Dialer, ln *iwarp.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var by map[string]*iwarp.QP
	var accepting sync.WaitGroup
	accepting.Go(func() { by = q.acceptAll(ctx, ln, cancel) })
	q.dialAll(ctx, dialer, cancel)
	accepting.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, from := range q.senders {
		peer := from.LocalAddr().String()
		to, c := by[peer], q.stack.conns[peer]
		c.qp.Store(to)
		q.accepted, q.conns = append(q.accepted, to), append(q.conns, c)
	}
	return nil
}

// acceptAll accepts all connections, and returns them by their peers' addresses. It ends with the first that fails.
func (q *qpRun) acceptAll(ctx context.Context, ln *iwarp.Listener,
	failed context.CancelCauseFunc) map[string]*iwarp.QP {
	by := make(map[string]*iwarp.QP)
	for range q.cfg.Connections {
		qp, err := accept(ctx, ln)
		if err != nil {
			failed(err)
			break
		}
		by[qp.RemoteAddr().String()] = qp
	}
	return by
}

// dialAll dials all connections, some at a time.
func (q *qpRun) dialAll(ctx context.Context, dialer *iwarp.Dialer, failed context.CancelCauseFunc) {
	q.senders = make([]*iwarp.QP, q.cfg.Connections)
	slots := make(chan struct{}, together)
	_ = q.each(func(i int) (err error) {
		slots <- struct{}{}
		defer func() { <-slots }()
		if q.senders[i], err = dialer.Dial(ctx, "tcp4", "192.0.2.2:"+port); err != nil {
			failed(err)
		}
		return err
	})
}

func accept(ctx context.Context, ln *iwarp.Listener) (*iwarp.QP, error) {
	req, err := ln.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return req.Accept(ctx, iwarp.AcceptConfig{Prepare: func(
		qp *iwarp.QP) error {
		return qp.PostRecv(&iwarp.RecvWR{})
	}})
}

// send writes the bytes of a connection to its memory, tells that by a Send, and waits until that has come.
func (q *qpRun) send(ctx context.Context, i int) error {
	qp := q.senders[i]
	source := make([]byte, chunk)
	fill(source, uint32(i))
	mr, err := qp.PD().Register(source, 0)
	if err != nil {
		return err
	}
	for left := q.cfg.Bytes; left > 0; left -= chunk {
		if _, err := qp.Write(ctx, mr.Slice(0, min(chunk, (left+3)&^3)), q.memory.Remote(i*chunk)); err != nil {
			return err
		}
	}
	if err := qp.Send(ctx, mr.Slice(0, 0)); err != nil {
		return err
	}
	if wc, err := q.accepted[i].RecvCQ().Next(ctx); err != nil || wc.Err() != nil {
		return errors.Join(err, wc.Err())
	}
	if err := check(q.memory.Bytes()[i*chunk:][:min(chunk, q.cfg.Bytes&^3)]); err != nil {
		return fmt.Errorf("connection %d: %w", i, err)
	}
	return nil
}

func (q *qpRun) result() *Result {
	q.run.receivers = nil
	res := q.outcome(q.cfg.Connections, q.conns[0].EMSS())
	var all durations
	for i, qp := range q.accepted {
		s := qp.Stats()
		res.Bytes += q.cfg.Bytes
		res.Ahead += float64(s.Ahead.PlacedBytes)
		res.Held = max(res.Held, int(s.Ahead.MostBytes))
		res.HeldAll += int(s.Ahead.MostBytes)
		c := q.conns[i]
		c.mu.Lock()
		res.TCPHeld = max(res.TCPHeld, c.half.mostBeyond())
		all.join(&c.times)
		c.mu.Unlock()
	}
	res.Ahead /= float64(res.Bytes)
	res.setTimes(&all, q.cfg.Delay)
	return res
}

// A measuredStack is a receiver's stack, whose connections measure what a QP does with what has come.
type measuredStack struct {
	*usertcp.Stack
	run   *run
	conns map[string]*measuredConn // by the peer's address
}

// Listen is iwarp.Stack's.
func (s *measuredStack) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	ln, err := s.Stack.Listen(ctx, network, address)
	return &measuredListener{ln, s}, err
}

type measuredListener struct {
	net.Listener
	stack *measuredStack
}

// Accept is net.Listener's.
func (l *measuredListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &measuredConn{Conn: conn.(*usertcp.Conn), ahead: l.stack.run.way.Ahead}
	c.half = l.stack.run.arriving.half(uint16(conn.RemoteAddr().(*net.TCPAddr).Port))
	l.stack.conns[conn.RemoteAddr().String()] = c
	return c, nil
}

// A measuredConn notes when a QP has placed what is shown to it, and when it has taken what it has read: when it reads
// on.
type measuredConn struct {
	*usertcp.Conn
	half  *half
	ahead bool
	qp    atomic.Pointer[iwarp.QP]

	mu    sync.Mutex
	read  uint64
	times durations
}

// ShowAhead is lowerlayer.SegmentedConn's. In order, nothing is shown.
func (c *measuredConn) ShowAhead(f func(at uint64, data []byte)) {
	if f == nil || !c.ahead {
		c.Conn.ShowAhead(nil)
		return
	}
	c.mu.Lock()
	first := c.read
	c.mu.Unlock()
	c.Conn.ShowAhead(func(at uint64, data []byte) {
		before := c.placed()
		f(at, data)
		if c.placed() == before {
			return
		}
		arrived, _ := c.half.arrival(first+at, first+at+uint64(len(data)))
		c.mu.Lock()
		defer c.mu.Unlock()
		c.times.placedAhead = append(c.times.placedAhead, micros(time.Since(arrived)))
	})
}

// placed counts the bytes that were placed ahead.
func (c *measuredConn) placed() uint64 {
	if qp := c.qp.Load(); qp != nil {
		return qp.Stats().Ahead.PlacedBytes
	}
	return 0
}

// Read is net.Conn's. What it brought before is placed and delivered now.
func (c *measuredConn) Read(b []byte) (int, error) {
	c.taken()
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read += uint64(n)
	return n, err
}

func (c *measuredConn) taken() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.half.taken(c.read, time.Now()) {
		c.times.deliveredAhead = append(c.times.deliveredAhead, micros(t))
		if !c.ahead {
			c.times.placedAhead = append(c.times.placedAhead, micros(t))
		}
	}
}
