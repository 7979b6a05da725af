package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
)

// arrivalWait is how long the responder waits for an announced connection.
const arrivalWait = 15 * time.Second

// attendance is the responder's way through a measurement: it answers the
// initiator's requests.
type attendance struct {
	*visit
	*session
	baseline net.Listener // for plain TCP connections; nil if there are to be none
	slice    *job         // the last one
	wrong    error        // why it failed, if it did
}

func (a *attendance) run(ctx context.Context, req *iwarp.Request) error {
	if err := a.acceptControl(ctx, req); err != nil {
		return err
	}
	defer a.closeBaseline()
	ctx, cancel := whileConnected(ctx, a.ctl.qp)
	defer cancel()
	for {
		next, err := a.ctl.next(ctx)
		if errors.Is(err, errClosed) && a.wrong == nil {
			return nil
		}
		if err != nil {
			return errors.Join(a.wrong, err)
		}
		if err := a.handle(ctx, next); err != nil {
			return err
		}
	}
}

// handle answers one request. What is wrong with a request, or with a slice, is
// told to the initiator; only what is wrong with the control connection is
// an error here.
func (a *attendance) handle(ctx context.Context, req request) error {
	switch {
	case req.Open != nil:
		return a.open(ctx, *req.Open)
	case req.Lanes != nil:
		return a.tell(ctx, answer{Lanes: a.regions()}, a.meet(req.Lanes))
	case req.Slice != nil:
		return a.attend(ctx, *req.Slice)
	case req.Check:
		return a.tell(ctx, answer{}, a.verdict())
	default:
		return a.tell(ctx, answer{}, errors.New("perf: empty request"))
	}
}

func (a *attendance) tell(ctx context.Context, ans answer, err error) error {
	if err != nil {
		a.wrong = err
		ans = answer{Error: err.Error()}
	}
	return a.ctl.answer(ctx, ans)
}

// open makes room for a measurement, says on which port plain TCP connections
// are taken, and then takes in what the initiator dials.
func (a *attendance) open(ctx context.Context, opts Options) error {
	port, err := a.makeRoom(opts)
	if err := a.tell(ctx, answer{TCPPort: port}, err); err != nil || a.wrong != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, arrivalWait)
	defer cancel()
	return a.gather(ctx)
}

// makeRoom returns 0 for the port if there is to be no plain TCP.
func (a *attendance) makeRoom(opts Options) (port int, err error) {
	if len(a.qps) > 0 {
		return 0, errors.New("perf: the measurement has already begun")
	}
	if opts, err = opts.resolved(); err != nil {
		return 0, err
	}
	if err := a.allocate(opts); err != nil || opts.NoBaseline {
		return 0, err
	}
	host, _, err := net.SplitHostPort(a.ctl.qp.LocalAddr().String())
	if err != nil {
		return 0, err
	}
	if a.baseline, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
		return 0, err
	}
	return a.baseline.Addr().(*net.TCPAddr).Port, nil
}

func (a *attendance) closeBaseline() {
	if a.baseline != nil {
		a.baseline.Close()
	}
}

// gather takes in a QP and a plain TCP connection for each lane.
func (a *attendance) gather(ctx context.Context) error {
	for range a.qps {
		select {
		case in := <-a.lanes:
			if err := a.acceptQP(ctx, in); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("perf: waiting for the initiator's connections: %w", context.Cause(ctx))
		}
	}
	if a.opts.NoBaseline {
		return nil
	}
	defer context.AfterFunc(ctx, a.closeBaseline)()
	for taken := 0; taken < len(a.tcps); {
		conn, err := a.baseline.Accept()
		if err != nil {
			return err
		}
		if a.acceptTCP(conn) {
			taken++
		}
	}
	return nil
}

// acceptQP brings up the QP of a connection request.
func (a *attendance) acceptQP(ctx context.Context, in arrival) error {
	if int(in.index) >= len(a.qps) || a.qps[in.index].qp != nil {
		reject(in.req, "perf: no such connection in this measurement")
		return fmt.Errorf("perf: the initiator opened connection %d of %d", in.index, len(a.qps))
	}
	l := a.qps[in.index]
	var err error
	l.qp, err = in.req.Accept(ctx, iwarp.AcceptConfig{PD: a.pd, QP: l.config(a.opts.maxSlots()), MPA: in.offer()})
	return err
}

// acceptTCP takes a plain TCP connection in, if it is one of this measurement.
func (a *attendance) acceptTCP(conn net.Conn) bool {
	text := make([]byte, helloLen)
	conn.SetDeadline(time.Now().Add(arrivalWait))
	_, err := io.ReadFull(conn, text)
	h, bad := parseHello(text)
	if err != nil || bad != nil || h.session != a.id || int(h.index) >= len(a.tcps) || a.tcps[h.index].conn != nil {
		conn.Close()
		return false
	}
	conn.SetDeadline(time.Time{})
	a.tcps[h.index].conn = conn
	return true
}

// attend answers a slice. The initiator hears how it went when it asks.
func (a *attendance) attend(ctx context.Context, j job) error {
	if err := a.admit(j); err != nil {
		return a.tell(ctx, answer{}, err)
	}
	if err := a.prepare(j); err != nil {
		return a.tell(ctx, answer{}, err)
	}
	a.slice = &j
	if err := a.ctl.answer(ctx, answer{}); err != nil {
		return err
	}
	if a.wrong = a.respond(ctx, j); a.wrong != nil {
		a.abort() // or the initiator would wait for what does not come
	}
	return nil
}

// admit refuses slices that the connections and buffers are not made for.
func (a *attendance) admit(j job) error {
	switch {
	case j.Transport == TCP && a.opts.NoBaseline:
		return errors.New("perf: no plain TCP in this measurement")
	case j.Size < 1 || j.Slots < 1 || j.Count < 1 || j.Depth < 1 || j.Depth > j.Slots || j.Salt < 0:
		return errors.New("perf: bad slice")
	case j.Slots > a.opts.maxSlots() || int64(j.Size) > a.opts.ring()/int64(j.Slots):
		return errors.New("perf: slice larger than what was announced")
	}
	return nil
}

// verdict says what is wrong with the last slice.
func (a *attendance) verdict() error {
	if a.wrong != nil {
		return a.wrong
	}
	if a.slice == nil {
		return errors.New("perf: nothing to check")
	}
	return a.check(*a.slice)
}
