package oooexperiment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/usertcp"
)

// RunAll runs ways, one after the other. It tells begin of each before that. With
// the error of a context that has ended, there is a report on the ways before.
func RunAll(ctx context.Context, cfg Config, ways []Way, begin func(way string)) (*Report, error) {
	report := &Report{Config: cfg, Results: []Result{}}
	for _, w := range ways {
		begin(w.Name)
		r, err := Run(ctx, cfg, w)
		if err != nil {
			report.Interrupted = ctx.Err() != nil
			return report, fmt.Errorf("study: %s: %w", w.Name, err)
		}
		report.Results = append(report.Results, *r)
	}
	return report, nil
}

// A run is one Way on its way.
type run struct {
	cfg      Config
	way      Way
	path     *usertcp.PipeEnd // the sender's end
	from, to *usertcp.Stack
	arriving *arriving
	held     total // by MPA
	tcpHeld  total

	senders   []*usertcp.Conn
	receivers []*receiver
	took      time.Duration
}

const port = "7174"

// maxRTO bounds the waits of connections whose acknowledgements have waited for the processor.
const maxRTO = time.Second

func newRun(cfg Config, w Way) (*run, error) {
	r := &run{cfg: cfg, way: w}
	a, b := usertcp.Pipe(cfg.MTU, cfg.path(), usertcp.Path{Delay: cfg.Delay})
	r.path, r.arriving = a, newArriving(b, &r.tcpHeld)
	var err error
	if r.from, err = usertcp.New(usertcp.Config{Link: a, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
		MaxRTO: maxRTO}); err != nil {
		return nil, err
	}
	r.to, err = usertcp.New(usertcp.Config{
		Link: r.arriving, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")},
		MaxRTO: maxRTO, ReceiveBuffer: w.Window,
	})
	if err != nil {
		return nil, errors.Join(err, r.from.Close())
	}
	return r, nil
}

func (r *run) close() {
	_ = r.from.Close()
	_ = r.to.Close()
}

// together is how many connections are made at a time.
const together = 64

// connect makes all connections, some at a time.
func (r *run) connect(ctx context.Context) error {
	l, err := r.to.Listen(ctx, "tcp4", ":"+port)
	if err != nil {
		return err
	}
	defer l.Close()
	for n := r.cfg.Connections; n > 0 && err == nil; n -= together {
		err = r.connectSome(ctx, l, min(n, together))
	}
	return err
}

func (r *run) connectSome(ctx context.Context, l net.Listener, n int) error {
	dialed, failed := make(chan *usertcp.Conn, n), make(chan error, n)
	for range n {
		go func() {
			c, err := r.from.DialContext(ctx, "tcp4", "192.0.2.2:"+port)
			if err != nil {
				failed <- err
				return
			}
			dialed <- c.(*usertcp.Conn)
		}()
	}
	for range n {
		select {
		case err := <-failed:
			return err
		case c := <-dialed:
			r.senders = append(r.senders, c)
		}
	}
	for range n {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		conn := c.(*usertcp.Conn)
		r.receivers = append(r.receivers, newReceiver(r, conn,
			r.arriving.half(uint16(conn.RemoteAddr().(*net.TCPAddr).Port))))
	}
	return nil
}

// transfer has all connections send at once, and waits until everything is delivered.
func (r *run) transfer(ctx context.Context) error {
	var all sync.WaitGroup
	failed := make(chan error, 2*r.cfg.Connections)
	begun := time.Now()
	for i := range r.receivers {
		all.Go(func() { failed <- r.receivers[i].receive() })
		all.Go(func() { failed <- r.send(r.senders[i]) })
	}
	stop := context.AfterFunc(ctx, r.close)
	defer stop()
	all.Wait()
	r.took = time.Since(begun)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var errs error
	for range 2 * len(r.receivers) {
		errs = errors.Join(errs, <-failed)
	}
	return errs
}

// outcome is what is known of the path, and of MPA's memory where it is not a QP's.
func (r *run) outcome(connections, emss int) *Result {
	sent := r.path.Sent()
	return &Result{
		Way: r.way.Name, Connections: connections, Seconds: r.took.Seconds(),
		Packets: sent.Packets, Lost: sent.Lost, Late: sent.Late, EMSS: emss,
		HeldAll: r.held.peak(), TCPHeldAll: r.tcpHeld.peak(),
	}
}

// setTimes sets the times of all connections.
func (r *Result) setTimes(all *durations, delay time.Duration) {
	r.Placed, r.Delivered = timesOf(all.placed), timesOf(all.delivered)
	r.PlacedAhead, r.DeliveredAhead = timesOf(all.placedAhead), timesOf(all.deliveredAhead)
	r.reckon(delay)
}

func (r *run) result() *Result {
	res := r.outcome(len(r.receivers), r.senders[0].EMSS())
	var all durations
	ahead := 0
	for _, c := range r.receivers {
		res.Bytes += c.bytes
		ahead += c.ahead
		res.Held = max(res.Held, c.rec.Stats().MostHeld)
		res.TCPHeld = max(res.TCPHeld, c.half.mostBeyond())
		all.join(&c.times)
	}
	res.Ahead = float64(ahead) / float64(max(res.Bytes, 1))
	res.setTimes(&all, r.cfg.Delay)
	return res
}
