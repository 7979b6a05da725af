package peersim

import (
	"net"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Initiate plays the Initiator on a connection that it has opened. It returns when
// the connection is up: its RTR indication sent, and answered if it is a Read. The
// error is a *Refusal.
func Initiate(b *peers.Peer, conn net.Conn, c Consumer) (*Session, error) {
	p := start(b, conn, c, mpa.RoleInitiator)
	q := p.request()
	if err := p.send(&q); err != nil {
		return nil, err
	}
	f, err := p.receive(mpa.KeyReply, b.ReplyTimeout, b.LongReply)
	if err != nil {
		return nil, err
	}
	if err := p.judgeReply(&q, &f); err != nil {
		return nil, err
	}
	s := p.session(mpa.AppendStartup(nil, &q), f.StartupFrame)
	s.maySend = true
	return s, p.open(s, &f)
}

// Dial is Initiate on a connection that dial opens, and on a second one where the
// peer falls back to revision 1. fellBack reports whether it did.
func Dial(b *peers.Peer, dial func() (net.Conn, error), c Consumer) (s *Session, fellBack bool, err error) {
	conn, err := dial()
	if err != nil {
		return nil, false, err
	}
	s, err = Initiate(b, conn, c)
	if err == nil || !b.FallsBack || b.Revision < 2 || !isReset(err) {
		return s, false, err
	}
	if conn, err = dial(); err != nil {
		return nil, true, err
	}
	again := *b
	again.Revision = 1
	s, err = Initiate(&again, conn, c)
	return s, true, err
}

func (p *peer) request() mpa.StartupFields {
	f := mpa.StartupFields{Key: mpa.KeyRequest, C: p.AsksCRC, Rev: p.Revision, S: p.Revision >= 2}
	if !f.S {
		f.PrivateData = p.privateData(true)
		return f
	}
	e := mpa.Enhanced{IRD: p.ird, ORD: p.ord}
	if p.PeerToPeer {
		e = e.WithRTR(p.OfferRTR)
	}
	f.PrivateData = append(mpa.AppendEnhanced(nil, &e), p.privateData(false)...)
	return f
}

// judgeReply refuses what this peer refuses, and adopts the depths.
func (p *peer) judgeReply(q *mpa.StartupFields, f *received) error {
	if f.M() {
		if err := p.refuse(p.Markers, "a Reply with M=1: it has no markers"); err != nil {
			return err
		}
	}
	if f.R() {
		return p.refuse(peers.Closes, "a Reply with R=1 and private data %q", f.ULPData())
	}
	if f.Rev() > q.Rev {
		return p.refuse(p.BadRevision, "a Reply of revision %d", f.Rev())
	}
	if err := p.judgeEnhanced(f, p.ShortReply); err != nil {
		return err
	}
	switch {
	case q.S && !f.enhanced:
		return p.refuse(p.PlainReply, "a Reply of revision %d without enhanced data", f.Rev())
	case !f.enhanced:
		return p.smbDepths(f.PrivateData())
	}
	return p.adopt(f)
}

// adopt takes over the depths of an enhanced Reply.
func (p *peer) adopt(f *received) error {
	p.ord = min(p.ord, f.IRD)
	if f.ORD > p.ird && f.ORD != mpa.NoNegotiation {
		if err := p.refuse(p.HigherORD, "ORD %d over its IRD %d", f.ORD, p.ird); err != nil {
			return err
		}
		p.ird = min(f.ORD, p.MaxIRD)
	}
	if p.ReadNeedsIRD && f.D && f.IRD == 0 {
		return p.refuse(peers.Resets, "a Read as RTR indication, and IRD 0")
	}
	return nil
}

// open sends what opens the connection.
func (p *peer) open(s *Session, f *received) error {
	kind := mpa.RTR(0)
	switch {
	case !f.enhanced && p.FirstRead && p.ird > 0:
		kind = mpa.RTRRead
	case f.enhanced && f.ORD != mpa.NoNegotiation && f.ORD > p.MaxIRD:
		return p.turnDown(s, rdmap.CodeMPAInsufficientIRD)
	case f.enhanced && p.PeerToPeer:
		kind = chosen(p.TakesRTR, f.RTR())
		if kind&p.OfferRTR == 0 {
			return p.turnDown(s, rdmap.CodeMPANoMatchingRTR)
		}
	}
	s.RTR = kind
	if kind == 0 {
		return nil
	}
	return s.sendRTR(kind)
}

// turnDown ends a connection with a Terminate of the LLP.
func (p *peer) turnDown(s *Session, code rdmap.Code) error {
	_ = s.Terminate(code)
	return &Refusal{Peer: p.Name, Role: p.role, End: peers.Closes, Why: "sent a Terminate, " + code.String()}
}
