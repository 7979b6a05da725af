package probe

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// askSessions asks for a session in each way.
func (p *sctpProber) askSessions() (err error) {
	s := &p.report.Sessions
	if s.Plain, err = p.initiate("plain Initiate", nil, nil); err != nil {
		return err
	}
	if s.PeerToPeer, err = p.initiate("Enhanced Initiate, peer-to-peer",
		enhanced(true, mpa.RTRWrite|mpa.RTRRead), nil); err != nil {
		return err
	}
	s.ClientServer, err = p.initiate("Enhanced Initiate, client-server (A=0)", enhanced(false, 0), nil)
	return err
}

// askIndications opens associations without DDP's Adaptation Layer Indication. What takes
// them is asked for a session all the same.
func (p *sctpProber) askIndications() (err error) {
	ask := func(name string, change func(*chunk.Setup)) (*SessionQuestion, error) {
		ours := script.DDPSetup()
		change(&ours)
		return p.associate(name, ours, func(t *talk) {
			t.q.Associated = true
			s := t.Session(0)
			t.ask(s, p.request(nil))
			t.part(s)
		})
	}
	i := &p.report.Indications
	if i.None, err = ask("INIT without indication", func(s *chunk.Setup) { s.HasAdaptation = false }); err != nil {
		return err
	}
	i.Other, err = ask("INIT with indication 7", func(s *chunk.Setup) { s.Adaptation = 7 })
	return err
}

// askKinds asks for each kind of RTR indication alone, for all, and for none.
func (p *sctpProber) askKinds() error {
	if !p.report.Sessions.PeerToPeer.isEnhanced() {
		return nil
	}
	for _, kinds := range offers {
		q, err := p.initiate("RTR "+kinds.String(), enhanced(true, kinds), nil)
		if q == nil {
			if err != nil {
				return err
			}
			continue
		}
		p.report.RTR = append(p.report.RTR, kindsAnswer(kinds, q.Outcome, q.answered))
	}
	return nil
}

// askReadDepths asks for depths of RDMA Reads.
func (p *sctpProber) askReadDepths() error {
	if !p.report.Sessions.ClientServer.isEnhanced() {
		return nil
	}
	for _, depth := range depthsAsked {
		e := mpa.Enhanced{IRD: depth, ORD: depth}
		q, err := p.initiate(aboutDepths(depth), &e, nil)
		if q == nil {
			if err != nil {
				return err
			}
			continue
		}
		p.report.Depths = append(p.report.Depths, depthAnswer(depth, q.Outcome, q.answered))
	}
	return nil
}

// askLengths asks with as much private data as there may be, and with one byte more.
func (p *sctpProber) askLengths() error {
	for _, c := range []struct {
		n  int
		to **SessionQuestion
	}{{mpa.MaxPrivateData, &p.report.PrivateData.Most}, {mpa.MaxPrivateData + 1, &p.report.PrivateData.Over}} {
		q, err := p.associate(fmt.Sprintf("%d bytes of private data", c.n), script.DDPSetup(), func(t *talk) {
			s := t.Session(0)
			r := p.request(nil)
			r.PrivateData = append(r.PrivateData[:len(r.PrivateData):len(r.PrivateData)],
				make([]byte, c.n-len(r.PrivateData))...)
			t.ask(s, r)
			t.part(s)
		})
		if err != nil {
			return err
		}
		*c.to = q
	}
	return nil
}

// askOdd says what no active end says first.
func (p *sctpProber) askOdd() (err error) {
	o := &p.report.Odd
	for _, c := range []struct {
		name string
		say  func(*script.Session) sctp.Message
		to   **SessionQuestion
	}{
		{"Function Code 8", func(s *script.Session) sctp.Message { return s.Function(8) }, &o.Unknown},
		{"a DDP Segment before the Initiate", func(s *script.Session) sctp.Message {
			return s.Message(rdmap.OpSend,
				nil)
		}, &o.Segment},
		{"an ordered Initiate", func(s *script.Session) sctp.Message {
			m := s.Control(p.request(nil))
			m.Ordered = true
			return m
		}, &o.Ordered},
	} {
		*c.to, err = p.associate(c.name, script.DDPSetup(), func(t *talk) {
			s := t.Session(0)
			t.say(s, c.say(s))
			t.part(s)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// askStreams asks for a second session beside the first.
func (p *sctpProber) askStreams() (err error) {
	p.report.Second, err = p.initiate("a second session in the association", nil, func(t *talk, _ *script.Session) {
		other := t.Session(2)
		t.Send(other.Control(p.request(nil)))
		if t.q.Outcome, t.q.Answer = t.hear(other); t.q.Outcome == Accepted {
			t.Send(other.Function(sctp.FunctionTerminate))
		}
	})
	return err
}
