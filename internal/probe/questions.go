package probe

import (
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// usualDepth is asked for where the question is not about depths.
const usualDepth = 16

const everyRTR = mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead

// offers are the RTR indications to ask for: each kind alone, all, and none.
var offers = [...]mpa.RTR{mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend, everyRTR, 0}

// enhanced returns enhanced data of the usual depths, with flag A and kinds of RTR.
func enhanced(a bool, kinds mpa.RTR) *mpa.Enhanced {
	e := mpa.Enhanced{IRD: usualDepth, ORD: usualDepth}.WithRTR(kinds)
	e.A = a
	return &e
}

// askRevisions asks in every revision, with and without S, what was not asked before.
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
		if *c.to != nil {
			continue
		}
		q, err := p.ask(c.name, p.request(mpa.StartupFields{C: true, Rev: c.rev}, c.e))
		if err != nil {
			return err
		}
		*c.to = q
		if p.hearsOther() || p.putsOff() && c.to == &r.TwoPeerToPeer {
			break
		}
	}
	return nil
}

// hearsOther reports whether the answers so far are in another protocol. Such a peer
// need not be asked every question, each of which may take a Timeout.
func (p *prober) hearsOther() bool {
	not, _ := p.report.notMPA()
	return not && len(p.report.Questions) > 1
}

// askSMBDirect asks a peer that does not take a plain Request of revision 1 with the
// depths of MS-SMBD, section 6.1, in front of the private data.
func (p *prober) askSMBDirect() (err error) {
	r := &p.report.Revisions
	if r.One.replied() || r.OneSMBDirect != nil || p.hearsOther() || p.putsOff() ||
		len(p.cfg.PrivateData) > maxBesideSMB {
		return nil
	}
	p.smb = true
	r.OneSMBDirect, err = p.ask("revision 1, SMB Direct", p.request(mpa.StartupFields{C: true, Rev: 1}, nil))
	p.smb = r.OneSMBDirect.replied()
	return err
}

// maxBesideSMB is the most private data that there is room for beside those depths.
const maxBesideSMB = mpa.MaxPrivateData - ulpdata.SMBDirectLen

func rtrIf(set bool, kinds mpa.RTR) mpa.RTR {
	if set {
		return kinds
	}
	return 0
}

// askDialects asks in the dialects that are no revision of RFC 5044's frames. A peer that answers
// Requests in another protocol and yet knows the Start Key is asked the rest after all.
func (p *prober) askDialects() (err error) {
	other := p.hearsOther()
	if !other {
		err = p.askOlder()
	}
	if err == nil {
		p.report.Revisions.StartKey, err = p.ask("Start Key", mpa.AppendStartKey(nil, &mpa.StartKeyFields{C: true}))
	}
	if err != nil || !other || p.hearsOther() {
		return err
	}
	if err := p.askRevisions(); err != nil {
		return err
	}
	return p.askOlder()
}

// askOlder asks in revision 0, and in revision 1 with the Rtr frame.
func (p *prober) askOlder() (err error) {
	r := &p.report.Revisions
	// An RDMAC RNIC's Request: markers and CRCs. [N01]
	if r.Zero, err = p.converse("revision 0, markers", leaves,
		p.request(mpa.StartupFields{M: true, C: true}, nil)); err != nil {
		return err
	}
	r.RtrFrame, err = p.ask("revision 1 with S: the Rtr frame",
		p.request(mpa.StartupFields{C: true, S: true, Rev: 1}, nil))
	return err
}

// leaves finds out whether a peer that answers revision 0 with another revision then
// closes the connection. [N04]
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
	for _, kinds := range offers {
		q, err := p.ask("RTR "+kinds.String(), p.request(mpa.StartupFields{C: true, Rev: 2}, enhanced(true, kinds)))
		if q == nil {
			if err != nil {
				return err
			}
			continue
		}
		p.report.RTR = append(p.report.RTR, kindsAnswer(kinds, q.Outcome, q.answered()))
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

// askPrivateData finds by halving how much private data the peer takes.
func (p *prober) askPrivateData() error {
	f, e, ok := p.base()
	if !ok {
		return nil
	}
	limit := mpa.MaxPrivateData
	switch {
	case e != nil:
		limit = mpa.MaxEnhancedPrivateData
	case p.smb:
		limit = maxBesideSMB
	}
	taken, refused, over := len(p.cfg.PrivateData), limit+1, None
	for n := limit; refused-taken > 1; n = (taken + refused) / 2 {
		frame := p.request(f, e)
		frame = padded(frame, n-len(p.cfg.PrivateData))
		q, err := p.ask(wording.Bytes(n)+" of private data", frame)
		if q == nil {
			return err
		}
		if q.replied() {
			taken = n
		} else {
			refused, over = n, q.Outcome
		}
	}
	p.report.PrivateData = PrivateData{Most: taken, Allowed: limit, Over: over}
	return nil
}

// askInTwo sends the key of a Request, and a little later the rest.
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
	fields.PrivateData = append(fields.PrivateData[:len(fields.PrivateData):len(fields.PrivateData)],
		make([]byte, by)...)
	return mpa.AppendStartup(nil, &fields)
}
