package rping

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/rping/message"
)

// An endpoint is one end of a connection with its buffers.
type endpoint struct {
	*Config
	pd *iwarp.PD
	qp *iwarp.QP
	cq *iwarp.CQ

	in, out *iwarp.MR // adverts
	data    *iwarp.MR // the client's sink; what the server reads into and writes from
	regions []*iwarp.MR

	slot *admission.Slot // of a server's client; nil: it needs none
}

// newEndpoint registers the buffers, size bytes of them for data.
func newEndpoint(cfg *Config, rnic *iwarp.RNIC, size int) (*endpoint, error) {
	pd, err := rnic.AllocPD()
	if err != nil {
		return nil, err
	}
	e := &endpoint{Config: cfg, pd: pd}
	if err := e.allocate(size); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *endpoint) allocate(size int) (err error) {
	if e.cq, err = e.pd.RNIC().CreateCQ(32); err != nil {
		return err
	}
	if e.in, err = e.register(message.Len, iwarp.LocalWrite); err != nil {
		return err
	}
	if e.out, err = e.register(message.Len, iwarp.LocalWrite); err != nil {
		return err
	}
	e.data, err = e.register(size, offered)
	return err
}

// offered are the rights of a buffer that the peer reads and writes.
const offered = iwarp.LocalWrite | iwarp.RemoteRead | iwarp.RemoteWrite

// register registers a buffer until close.
func (e *endpoint) register(size int, rights iwarp.Access) (*iwarp.MR, error) {
	mr, err := e.pd.Register(make([]byte, size), rights)
	if err == nil {
		e.regions = append(e.regions, mr)
	}
	return mr, err
}

// close ends the connection, if there is one, and gives all back.
func (e *endpoint) close() {
	if e.qp != nil {
		hurry := time.AfterFunc(cmp.Or(e.closeTime, 5*time.Second), func() { _ = e.qp.Abort() })
		_ = e.qp.Close()
		hurry.Stop()
	}
	for _, mr := range e.regions {
		_ = mr.Deregister()
	}
	if e.cq != nil {
		_ = e.cq.Close()
	}
	_ = e.pd.Close()
}

func (e *endpoint) qpConfig() iwarp.QPConfig {
	return iwarp.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 16, RecvDepth: 2, IdleTimeout: e.Idle}
}

// prepare posts the first receive.
func (e *endpoint) prepare(qp *iwarp.QP) error {
	e.qp = qp
	return e.postReceive()
}

func (e *endpoint) postReceive() error {
	return e.qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{e.in.Slice(0, message.Len)}})
}

// advertOf tells of the first n bytes of a region.
func advertOf(mr *iwarp.MR, n int) message.Advert {
	r := mr.Remote(0)
	return message.Advert{TO: r.TO, STag: r.STag, Length: uint32(n)}
}

// remote returns the place that an advert tells of.
func remote(a message.Advert) iwarp.Remote { return iwarp.Remote{STag: a.STag, TO: a.TO} }

// advertise sends an advert.
func (e *endpoint) advertise(a message.Advert) error {
	e.report(Sent(a))
	a.Append(e.out.Bytes()[:0])
	return e.qp.Cause(e.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{e.out.Slice(0, message.Len)}}))
}

// receive waits for an advert, or a "go ahead", and posts the next receive.
func (e *endpoint) receive(ctx context.Context) (message.Advert, error) {
	wc, err := e.await(ctx, iwarp.OpRecv)
	if err != nil {
		return message.Advert{}, err
	}
	a, err := message.ParseAdvert(e.in.Bytes()[:wc.Length])
	if err != nil {
		return a, err
	}
	return a, e.postReceive()
}

// perform posts an RDMA Read or Write of n bytes and waits until it is done.
func (e *endpoint) perform(ctx context.Context, op iwarp.Op, n int, remote iwarp.Remote) error {
	err := e.qp.PostSend(&iwarp.SendWR{Op: op, SGL: []iwarp.SGE{e.data.Slice(0, n)}, Remote: remote})
	if err != nil {
		return e.qp.Cause(err)
	}
	_, err = e.await(ctx, op)
	return err
}

// await waits for a completion of op. Sends complete in passing; for anything
// else it is not the time.
func (e *endpoint) await(ctx context.Context, op iwarp.Op) (iwarp.WC, error) {
	for {
		wc, err := e.cq.Next(ctx)
		switch {
		case err != nil:
			return wc, e.qp.Cause(err)
		case wc.Err() != nil:
			return wc, e.qp.Cause(wc.Err())
		case wc.Op == op:
			e.slot.Moved()
			e.report(Completed(op))
			return wc, nil
		case wc.Op != iwarp.OpSend:
			return wc, fmt.Errorf("rping: %v completion while waiting for %v: the peer does not keep to the protocol",
				wc.Op, op)
		}
	}
}
