package rping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
)

// errDisconnected is the peer's regular close.
var errDisconnected = errors.New("the peer closed the connection")

// An endpoint is one end of a connection with its buffers.
type endpoint struct {
	*Config
	pd *iwarp.PD
	qp *iwarp.QP
	cq *iwarp.CQ
	wc [1]iwarp.WC

	in, out *iwarp.MR // adverts
	data    *iwarp.MR // the client's sink; what the server reads into and writes from
}

// newEndpoint registers the buffers, size octets of them for data.
func newEndpoint(cfg *Config, rnic *iwarp.RNIC, size int) (*endpoint, error) {
	pd, err := rnic.AllocPD()
	if err != nil {
		return nil, err
	}
	e := &endpoint{Config: cfg, pd: pd}
	if e.cq, err = rnic.CreateCQ(32); err != nil {
		return nil, err
	}
	if e.in, err = e.pd.Register(make([]byte, AdvertLen), iwarp.LocalWrite); err != nil {
		return nil, err
	}
	if e.out, err = e.pd.Register(make([]byte, AdvertLen), iwarp.LocalWrite); err != nil {
		return nil, err
	}
	e.data, err = e.register(size)
	return e, err
}

// register registers a buffer that the peer may read and write.
func (e *endpoint) register(size int) (*iwarp.MR, error) {
	return e.pd.Register(make([]byte, size), iwarp.LocalWrite|iwarp.RemoteRead|iwarp.RemoteWrite)
}

func (e *endpoint) qpConfig() iwarp.QPConfig {
	return iwarp.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 16, RecvDepth: 2}
}

// prepare posts the first receive.
func (e *endpoint) prepare(qp *iwarp.QP) error {
	e.qp = qp
	return e.postReceive()
}

func (e *endpoint) postReceive() error {
	return e.qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{e.in.Slice(0, AdvertLen)}})
}

// advertise sends an advert.
func (e *endpoint) advertise(ctx context.Context, a Advert) error {
	e.debugf("RDMA addr %x rkey %x len %d", a.Remote.TO, a.Remote.STag, a.Length)
	a.Append(e.out.Bytes()[:0])
	return e.postSend(ctx, &iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{e.out.Slice(0, AdvertLen)}})
}

// receive waits for an advert, or a "go ahead", and posts the next receive.
func (e *endpoint) receive(ctx context.Context) (Advert, error) {
	wc, err := e.await(ctx, iwarp.OpRecv)
	if err != nil {
		return Advert{}, err
	}
	a, err := ParseAdvert(e.in.Bytes()[:wc.Length])
	if err != nil {
		return a, err
	}
	if err := e.postReceive(); err != nil {
		return a, e.ended(ctx, err)
	}
	return a, nil
}

// perform posts an RDMA Read or Write of n octets and waits until it is done.
func (e *endpoint) perform(ctx context.Context, op iwarp.Op, n int, remote iwarp.Remote) error {
	err := e.postSend(ctx, &iwarp.SendWR{Op: op, SGL: []iwarp.SGE{e.data.Slice(0, n)}, Remote: remote})
	if err != nil {
		return err
	}
	_, err = e.await(ctx, op)
	return err
}

func (e *endpoint) postSend(ctx context.Context, wr *iwarp.SendWR) error {
	if err := e.qp.PostSend(wr); err != nil {
		return e.ended(ctx, err)
	}
	return nil
}

// await waits for a completion of op. Sends complete in passing; for anything
// else it is not the time.
func (e *endpoint) await(ctx context.Context, op iwarp.Op) (iwarp.WC, error) {
	for {
		for e.cq.Poll(e.wc[:]) == 1 {
			wc := e.wc[0]
			switch {
			case wc.Err() != nil:
				return wc, e.ended(ctx, wc.Err())
			case wc.Op == op:
				e.debugf("%v completion", op)
				return wc, nil
			case wc.Op != iwarp.OpSend:
				return wc, fmt.Errorf("rping: %v completion while waiting for %v: the peer does not keep to the protocol", wc.Op, op)
			}
		}
		if err := e.cq.Wait(ctx); err != nil {
			return iwarp.WC{}, e.ended(ctx, err)
		}
	}
}

// whileConnected returns a context that ends with the connection, too. Work
// that is posted after the peer's orderly close would wait for ever: the QP
// is Idle then, and could be connected again.
func (e *endpoint) whileConnected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	done := e.qp.Done()
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// ended prefers the reason why the connection ended, which is known a little
// later, to what it did to a single work request.
func (e *endpoint) ended(ctx context.Context, err error) error {
	select {
	case <-e.qp.Done():
		return e.reason()
	default:
	}
	select {
	case <-e.qp.Done():
		return e.reason()
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second): // the connection is alive, only the request failed
		return err
	}
}

// reason is why a connection that has ended did so.
func (e *endpoint) reason() error {
	if cause := e.qp.Err(); cause != nil {
		return cause
	}
	return errDisconnected
}
