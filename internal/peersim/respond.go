package peersim

import (
	"net"
	"slices"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/mpa"
)

// Respond plays the Responder on a connection that the other end has opened. It
// returns when the connection is up: with A=1, after the RTR indication. The error
// is a *Refusal, or a *Terminated that came in its place.
func Respond(b *peers.Peer, conn net.Conn, c Consumer) (*Session, error) {
	p := start(b, conn, c, mpa.RoleResponder)
	q, err := p.receive(mpa.KeyRequest, b.RequestTimeout, b.LongRequest)
	if err != nil {
		return nil, err
	}
	if err := p.judgeRequest(&q); err != nil {
		return nil, err
	}
	f, e := p.reply(&q)
	if c.Reject {
		return nil, p.rejectByConsumer(&f)
	}
	if err := p.send(&f); err != nil {
		return nil, err
	}
	s := p.session(q.StartupFrame, mpa.AppendStartup(nil, &f))
	s.maySend = p.SendsEarly && !e.A
	if e.A {
		err = s.awaitRTR(e.RTR())
	}
	return s, err
}

// judgeRequest refuses what this peer refuses.
func (p *peer) judgeRequest(q *received) error {
	if rev := q.Rev(); rev < p.Lowest || rev > p.Highest {
		return p.refuse(p.BadRevision, "revision %d", rev)
	}
	if q.M() && p.Markers != peers.Tolerates {
		return p.reject(q, p.Markers, "M=1: it has no markers")
	}
	if err := p.judgeEnhanced(q, peers.Tolerates); err != nil {
		return err
	}
	if q.enhanced && len(q.PrivateData()) < mpa.EnhancedLen {
		return p.reject(q, p.ShortRequest, "no enhanced data")
	}
	if !q.enhanced {
		return p.smbDepths(q.PrivateData())
	}
	return nil
}

// reject sends a Reply with R=1 before the end, if the peer rejects.
func (p *peer) reject(q *received, end peers.End, why string) error {
	if end == peers.Rejects {
		f := p.replyTo(q.StartupFrame)
		f.R, f.M = true, false
		if f.S {
			f.PrivateData = make([]byte, mpa.EnhancedLen)
		}
		if err := p.send(&f); err != nil {
			return err
		}
	}
	return p.refuse(end, "%s", why)
}

// rejectByConsumer turns an accepting Reply into a rejecting one. All these peers
// close the connection after it.
func (p *peer) rejectByConsumer(f *mpa.StartupFields) error {
	f.R = true
	if err := p.send(f); err != nil {
		return err
	}
	return p.refuse(peers.Rejects, "its consumer rejects the connection")
}

// replyTo is the head of a Reply.
func (p *peer) replyTo(q mpa.StartupFrame) mpa.StartupFields {
	f := mpa.StartupFields{Key: mpa.KeyReply, C: p.AsksCRC || q.C(), S: q.Rev() >= 2 &&
		(q.S() || p.IgnoresS), Rev: q.Rev()}
	if p.EchoesBits {
		f.R, f.S, f.Res = q.R(), q.S(), q.Res()
	}
	return f
}

// reply is an accepting Reply.
func (p *peer) reply(q *received) (mpa.StartupFields, mpa.Enhanced) {
	f := p.replyTo(q.StartupFrame)
	if !q.enhanced {
		f.PrivateData = p.privateData(true)
		return f, mpa.Enhanced{}
	}
	e := p.enhanced(q)
	f.PrivateData = append(mpa.AppendEnhanced(nil, &e), p.privateData(false)...)
	return f, e
}

// enhanced returns the enhanced data of the Reply, and adopts its depths.
func (p *peer) enhanced(q *received) (e mpa.Enhanced) {
	e.IRD, e.ORD = p.AnswerDepths(p.ird, p.ord, q.IRD, q.ORD)
	if q.A {
		e = e.WithRTR(p.AnswerRTR(q.RTR()))
		if e.D && e.IRD == 0 {
			e.IRD = 1
		}
	}
	p.ird, p.ord = min(e.IRD, p.MaxIRD), min(e.ORD, p.ord)
	return e
}

// chosen returns the first of some kinds that is in a set, or none.
func chosen(order []mpa.RTR, named mpa.RTR) mpa.RTR {
	i := slices.IndexFunc(order, func(kind mpa.RTR) bool { return named&kind != 0 })
	if i < 0 {
		return 0
	}
	return order[i]
}
