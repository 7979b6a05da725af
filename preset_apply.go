package iwarp

import (
	"cmp"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/mpa/ulpdata"
)

// offer returns the offer of an Initiator, or of a Responder in answer to a Request: the
// consumer's offer, with the preset's values where it is zero, within the limits of the
// RNIC. p may be nil.
func (p *Preset) offer(r *RNIC, q *mpa.Request, o mpa.Offer, noReads bool) (mpa.Offer, error) {
	if p == nil {
		return r.depths(o, noReads)
	}
	from, dialect := p.Initiate, cmp.Or(o.Dialect, p.Initiate.Dialect)
	if q != nil {
		from, dialect = p.Accept.Offer(), q.Dialect
	}
	o, err := r.depths(fill(o, from, noReads), noReads)
	if err != nil {
		return o, err
	}
	return p.addDepths(o, dialect, q), p.checkPrivateData(dialect, len(o.PrivateData))
}

// fill returns o with the fields of another offer where its own are zero. With noReads,
// depths of zero are kept: they are meant.
func fill(o, from mpa.Offer, noReads bool) mpa.Offer {
	o.Dialect = cmp.Or(o.Dialect, from.Dialect)
	o.Kind = cmp.Or(o.Kind, from.Kind)
	o.RTR = cmp.Or(o.RTR, from.RTR)
	o.Timeout = cmp.Or(o.Timeout, from.Timeout)
	o.Messages = o.Messages || from.Messages
	o.Markers = o.Markers || from.Markers
	o.NoCRC = o.NoCRC || from.NoCRC
	o.ClientServer = o.ClientServer || from.ClientServer
	if o.IRD == 0 && o.ORD == 0 && !noReads {
		o.IRD, o.ORD = from.IRD, from.ORD
	}
	if !noReads {
		o.MaxIRD = cmp.Or(o.MaxIRD, from.MaxIRD)
	}
	if o.PrivateData == nil {
		o.PrivateData = from.PrivateData
	}
	return o
}

// checkPrivateData returns an error if the peer has no room for n octets of private data
// in a startup frame of a dialect.
func (p *Preset) checkPrivateData(d mpa.Dialect, n int) error {
	if p == nil || p.MaxPDLength == 0 {
		return nil
	}
	room := p.MaxPDLength
	switch {
	case p.SMBDirect:
		room -= ulpdata.SMBDirectLen
	case d == 0 || d == mpa.DialectRFC6581:
		room -= mpa.EnhancedLen
	}
	if n <= room {
		return nil
	}
	return &PresetError{Preset: p.Name, Setting: "MaxPDLength", Given: n, Limit: room, Why: p.Why("MaxPDLength")}
}

// qp returns a QPConfig with the preset's settings filled in.
func (p *Preset) qp(c QPConfig) QPConfig {
	if p != nil {
		c.Nudge = cmp.Or(c.Nudge, p.Nudge)
	}
	return c
}

// fallsBack reports whether there may be a second attempt, with revision 1.
func (p *Preset) fallsBack() bool { return p == nil || !p.NoFallback }

// serves returns the dialects that a Listener serves.
func (p *Preset) serves(own []mpa.Dialect) []mpa.Dialect {
	if p == nil || len(own) > 0 {
		return own
	}
	return p.Dialects
}
