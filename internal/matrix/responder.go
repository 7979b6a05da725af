package matrix

import (
	"context"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/mpa"
)

// A responder is our endpoint as the end that is asked.
type responder struct {
	*endpoint
	spec    *Responder
	ln      *iwarp.Listener
	answers chan answer
	loop    sync.WaitGroup
	seen    []answer // taken off answers
}

// An answer is what became of one Request.
type answer struct {
	request *mpa.Request
	peer    string    // address
	qp      *iwarp.QP // accepted
	conn    net.Conn  // rejected
	err     error
}

// maxConnections bounds the connections of one row: one, and another after a fallback.
const maxConnections = 4

func listen(ctx context.Context, over *network.Network, spec *Responder) (*responder, error) {
	e, err := newEndpoint(byResponder, spec.Kind, 0x33)
	if err != nil {
		return nil, err
	}
	r := &responder{endpoint: e, spec: spec, answers: make(chan answer, maxConnections)}
	r.ln, err = over.Listen(ctx, over.Here, &iwarp.ListenConfig{
		RNIC: e.rnic, PD: e.pd, Dialects: spec.Dialects, Messages: spec.Messages,
		Markers: spec.Answer.Markers, NoCRC: spec.Answer.NoCRC, RequestTimeout: beyondTimeLeft(ctx),
	})
	if err != nil {
		return nil, err
	}
	r.loop.Go(func() { r.serve(ctx) })
	return r, nil
}

// serve answers what is asked until the Listener ends.
func (r *responder) serve(ctx context.Context) {
	for {
		req, err := r.ln.Accept(ctx)
		if err != nil {
			return
		}
		a := answer{request: req.MPA(), peer: req.RemoteAddr().String()}
		if no := r.spec.Reject; no != nil {
			a.conn, a.err = req.RejectKeep(no.PrivateData, no.IRD, no.ORD)
		} else {
			a.qp, a.err = req.Accept(ctx, iwarp.AcceptConfig{
				MPA: r.spec.Answer, NoReads: r.spec.NoReads, QP: r.qpConfig(ctx), Prepare: r.prepare,
			})
		}
		if a.err != nil {
			r.causes.add(a.err.Error())
			_ = req.Close()
		}
		r.answers <- a
	}
}

// answerTo waits for the answer to the connection that the relay made from an address.
func (r *responder) answerTo(ctx context.Context, peer string) (answer, error) {
	for {
		select {
		case a := <-r.answers:
			r.seen = append(r.seen, a)
			if a.peer == peer {
				return a, a.err
			}
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
}

// finish ends the Listener and waits until the QPs have ended by themselves. Mostly the
// log has their reasons.
func (r *responder) finish(ctx context.Context) error {
	_ = r.ln.Close()
	r.loop.Wait()
	close(r.answers)
	for a := range r.answers {
		r.seen = append(r.seen, a)
	}
	for _, a := range r.seen {
		if a.qp == nil {
			continue
		}
		select {
		case <-a.qp.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := a.qp.Err(); a.qp.State() != iwarp.StateClosed && r.causes.none() {
			r.causes.add(err.Error())
		}
	}
	return nil
}
