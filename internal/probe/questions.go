package probe

import (
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

// Depths asked for where they are not what the question is about.
const usualDepth = 16

var everyRTR = mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead

// enhanced returns enhanced data of the usual depths, with flag A and kinds of RTR.
func enhanced(a bool, kinds mpa.RTR) *mpa.Enhanced {
	return &mpa.Enhanced{
		A: a, B: kinds&mpa.RTRSend != 0, C: kinds&mpa.RTRWrite != 0, D: kinds&mpa.RTRRead != 0, IRD: usualDepth, ORD: usualDepth,
	}
}

// askRevisions asks in every revision, with and without S.
func (p *prober) askRevisions() error {
	r := &p.report.Revisions
	usual := func(a bool) *mpa.Enhanced {
		return enhanced(a, rtrIf(a, mpa.RTRWrite|mpa.RTRRead))
	}
	for _, c := range []struct {
		name string
		rev  uint8
		e    *mpa.Enhanced
		to   **Question
	}{
		{"revision 1", 1, nil, &r.One},
		{"revision 2, peer-to-peer", 2, usual(true), &r.TwoPeerToPeer},
		{"revision 2, client-server (A=0)", 2, usual(false), &r.TwoClientServer},
		{"revision 2 without S", 2, nil, &r.TwoPlain},
		{"revision 3 with S", 3, usual(true), &r.ThreeEnhanced},
		{"revision 3 without S", 3, nil, &r.ThreePlain},
	} {
		q, err := p.ask(c.name, p.request(mpa.StartupFields{C: true, Rev: c.rev}, c.e))
		if err != nil {
			return err
		}
		*c.to = q
	}
	return nil
}

// askSMBDirect asks a peer that does not take a plain Request of revision 1 with the
// depths of MS-SMBD, section 6.1, in front of the private data.
func (p *prober) askSMBDirect() (err error) {
	r := &p.report.Revisions
	if r.One.replied() || len(p.cfg.PrivateData) > maxBehindSMB {
		return nil
	}
	p.smb = true
	r.OneSMBDirect, err = p.ask("revision 1, SMB Direct", p.request(mpa.StartupFields{C: true, Rev: 1}, nil))
	p.smb = r.OneSMBDirect.replied()
	return err
}

// maxBehindSMB is the most private data that there is room for behind those depths.
const maxBehindSMB = mpa.MaxPrivateData - mpa.SMBDirectLen

func rtrIf(set bool, kinds mpa.RTR) mpa.RTR {
	if set {
		return kinds
	}
	return 0
}

// askDialects asks in the dialects that are no revision of RFC 5044's frames.
func (p *prober) askDialects() (err error) {
	r := &p.report.Revisions
	// An RDMAC RNIC's Request: markers and CRCs. [N01]
	if r.Zero, err = p.converse("revision 0, markers", leaves, p.request(mpa.StartupFields{M: true, C: true}, nil)); err != nil {
		return err
	}
	if r.RtrFrame, err = p.ask("revision 1 with S: the Rtr frame", p.request(mpa.StartupFields{C: true, S: true, Rev: 1}, nil)); err != nil {
		return err
	}
	r.StartKey, err = p.ask("Start Key", mpa.AppendStartKey(nil, &mpa.StartKeyFields{C: true}))
	return err
}

// leaves finds out whether a peer that answers revision 0 with another one closes
// the connection. [N04]
func leaves(l *line, q *Question) {
	if q.replied() && q.reply.Rev() != 0 {
		q.Then = l.fate(l.timeout)
	}
}

// base returns the best Request that the peer answers, and whether there is one.
func (p *prober) base() (f mpa.StartupFields, e *mpa.Enhanced, ok bool) {
	r := &p.report.Revisions
	switch {
	case isEnhanced(r.TwoPeerToPeer):
		return mpa.StartupFields{C: true, Rev: 2}, enhanced(true, mpa.RTRWrite|mpa.RTRRead), true
	case isEnhanced(r.TwoClientServer):
		return mpa.StartupFields{C: true, Rev: 2}, enhanced(false, 0), true
	}
	return mpa.StartupFields{C: true, Rev: 1}, nil, r.One.replied() || r.OneSMBDirect.replied()
}

// askRTR asks for each kind of RTR indication alone, for all, and for none.
func (p *prober) askRTR() error {
	if _, ok := p.report.Revisions.TwoPeerToPeer.enhanced(); !ok {
		return nil
	}
	for _, kinds := range []mpa.RTR{mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend, everyRTR, 0} {
		q, err := p.ask("RTR "+kinds.String(), p.request(mpa.StartupFields{C: true, Rev: 2}, enhanced(true, kinds)))
		if err != nil {
			return err
		}
		a := RTRAnswer{Offered: kinds.String(), Outcome: q.Outcome}
		if e, ok := q.enhanced(); ok {
			a.FlagA, a.Answered = e.A, e.RTR().String()
		}
		p.report.RTR = append(p.report.RTR, a)
	}
	return nil
}

// askBits asks for markers, without CRCs, and with all reserved bits.
func (p *prober) askBits() error {
	f, e, ok := p.base()
	if !ok {
		return nil
	}
	b := &p.report.Bits
	for _, c := range []struct {
		name   string
		change func(*mpa.StartupFields)
		to     **Question
	}{
		{"markers", func(f *mpa.StartupFields) { f.M = true }, &b.Markers},
		{"no CRC", func(f *mpa.StartupFields) { f.C = false }, &b.NoCRC},
		{"reserved bits", func(f *mpa.StartupFields) { f.Res = 0xf }, &b.Reserved},
		{"R in a Request", func(f *mpa.StartupFields) { f.R = true }, &b.R},
	} {
		asked := f
		c.change(&asked)
		q, err := p.ask(c.name, p.request(asked, e))
		if err != nil {
			return err
		}
		*c.to = q
	}
	return nil
}

// askPrivateData finds the most private data that is answered, by halving.
func (p *prober) askPrivateData() error {
	f, e, ok := p.base()
	if !ok {
		return nil
	}
	d := &p.report.PrivateData
	limit := mpa.MaxPrivateData
	switch {
	case e != nil:
		limit = mpa.MaxEnhancedPrivateData
	case p.smb:
		limit = maxBehindSMB
	}
	taken, refused := len(p.cfg.PrivateData), limit+1
	for n := limit; refused-taken > 1; n = (taken + refused) / 2 {
		frame := p.request(f, e)
		frame = padded(frame, n-len(p.cfg.PrivateData))
		q, err := p.ask(fmt.Sprintf("%d octets of private data", n), frame)
		if err != nil {
			return err
		}
		if q.replied() {
			taken = n
		} else {
			refused, d.Over = n, q.Outcome
		}
	}
	d.Most, d.Allowed = taken, limit
	return nil
}

// askInTwo sends the key of a Request, and a little later what is behind it.
func (p *prober) askInTwo() (err error) {
	f, e, ok := p.base()
	if !ok {
		return nil
	}
	frame := p.request(f, e)
	p.report.InTwo, err = p.converse("a Request in two parts", nil, frame[:mpa.KeyLen], frame[mpa.KeyLen:])
	return err
}

// padded makes a Request's private data longer.
func padded(frame []byte, by int) []byte {
	f, _ := mpa.ParseStartup(frame)
	fields := f.Fields()
	fields.PrivateData = append(fields.PrivateData[:len(fields.PrivateData):len(fields.PrivateData)], make([]byte, by)...)
	return mpa.AppendStartup(nil, &fields)
}
