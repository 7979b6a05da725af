package iwarp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A Preset is what to offer to one kind of peer so that a connection with it comes
// up. Each setting has a reason. Put a Preset into a Dialer, a ListenConfig or an
// AcceptConfig: its settings fill in those that are zero there, and never overrule
// what the consumer has set. (A bool counts as set if it is true.)
type Preset struct {
	// Name is a word for command lines; Peer says which peer it is for.
	Name, Peer string

	// Initiate fills in zero fields of the MPA offer of a Dialer, and Accept those of
	// the MPA answer of an AcceptConfig.
	Initiate mpa.Offer
	Accept   mpa.Answer
	// Dialects are those in which the peer starts as Initiator. A Listener with the
	// preset serves these if its own list is empty.
	Dialects []mpa.Dialect
	// NoFallback keeps a Dialer from trying again with revision 1.
	NoFallback bool
	// Nudge fills in a zero QPConfig.Nudge if a Dialer creates the QP, also where the Reply
	// does not show who the peer is.
	Nudge time.Duration
	// SendEarly fills in a zero QPConfig.SendEarly if a Request is accepted.
	SendEarly time.Duration
	// MaxPDLength bounds the PD_Length of our startup frames, in bytes. It includes
	// the 4 bytes of the enhanced data of RFC 6581. More private data is
	// refused before anything is sent, by an error that wraps mpa.ErrOffer. If zero, only the dialect bounds it.
	MaxPDLength int
	// SMBDirect has the private data of our RFC 5044 startup frames begin with IRD and
	// ORD as in MS-SMBD, before the private data of the consumer. The peer's IRD bounds
	// our ORD. Negotiated has the depths of the peer, and its private data no longer
	// has them. See ulpdata.SMBDirect.
	SMBDirect bool

	// Reasons has an entry for every setting above, and for settings that are best
	// left alone, in the order of the settings.
	Reasons []Reason
}

// A Reason says why a Preset sets something, or leaves it alone.
type Reason struct {
	Setting string // as in the Preset, like "Initiate.RTR"
	Why     string
}

// Presets returns all presets. The caller may change them.
//
//	siw         Linux's software driver: revision 2, no markers, little private data
//	cxgb4       Chelsio under Linux: opens connections by Reads only
//	freebsd     Chelsio under FreeBSD: revision 1, and depths of 8
//	irdma       Intel: peer-to-peer connections only
//	qedr        Marvell: names several RTR indications at once
//	windows-v1  SMB Direct over RNICs of revision 1: depths in private data
//
// The preset for siw rests on measurements with Linux 6.1, the others on reading the
// drivers. Preset.Reasons has the details.
func Presets() []Preset {
	var all []Preset
	for _, p := range peers.All() {
		all = append(all, presetOf(&p))
	}
	return all
}

// LookupPreset returns the preset with a name: "siw", "cxgb4", "freebsd", "irdma",
// "qedr" or "windows-v1", in upper or lower case. The error is an *OpError that wraps ErrInvalid.
func LookupPreset(name string) (Preset, error) {
	if p, ok := peers.Lookup(strings.ToLower(name)); ok {
		return presetOf(&p), nil
	}
	var names []string
	for _, p := range peers.All() {
		names = append(names, p.Name)
	}
	err := fmt.Errorf("%w: no preset %q: one of %s", ErrInvalid, name, strings.Join(names, ", "))
	return Preset{}, &OpError{Op: "look up preset", Err: err}
}

// why returns the reason for a setting, and "" if there is none.
func (p *Preset) why(setting string) string {
	i := slices.IndexFunc(p.Reasons, func(r Reason) bool { return r.Setting == setting })
	if i < 0 {
		return ""
	}
	return p.Reasons[i].Why
}

// A presetError says that the peer of a preset does not take so much private data.
// Nothing was sent.
type presetError struct {
	preset string // its name
	given  int    // bytes of the consumer's private data
	limit  int    // bytes that the peer has room for
	why    string
}

// Error says how much there is room for, and why.
func (e *presetError) Error() string {
	return "iwarp: " + e.text()
}

func (e *presetError) text() string {
	return fmt.Sprintf("preset %s: %s of private data, there is room for %d: %s", e.preset, wording.Bytes(e.given),
		e.limit, e.why)
}

// Unwrap returns mpa.ErrOffer and ErrInvalid: a Request can still be answered.
func (e *presetError) Unwrap() []error { return []error{mpa.ErrOffer, ErrInvalid} }

// presetOf returns the advice that the table of known peers has. It leaves out a limit
// that is only assumed.
func presetOf(p *peers.Peer) Preset {
	preset := Preset{
		Name: p.Name, Peer: p.Product,
		Initiate: p.Initiate, Accept: p.Accept, Dialects: p.Dialects, NoFallback: p.NoFallback, Nudge: p.Nudge,
		SendEarly: p.SendEarly,
		SMBDirect: p.SMBDirect,
	}
	if p.Knows("MaxPDLength") {
		preset.MaxPDLength = p.MaxPDLength
	}
	for _, r := range p.Reasons {
		preset.Reasons = append(preset.Reasons, Reason(r))
	}
	return preset
}

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

// checkPrivateData returns an error if the peer has no room for n bytes of private data
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
	return &presetError{preset: p.Name, given: n, limit: room, why: p.why("MaxPDLength")}
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

// depthsInPrivateData reports whether frames of a dialect have IRD and ORD in front of the
// private data.
func (p *Preset) depthsInPrivateData(d mpa.Dialect) bool {
	return p != nil && p.SMBDirect && d == mpa.DialectRFC5044
}

// addDepths puts our IRD and ORD in front of the private data of a frame. In answer to a
// Request, our ORD is at most the peer's IRD.
func (p *Preset) addDepths(o mpa.Offer, d mpa.Dialect, q *mpa.Request) mpa.Offer {
	if !p.depthsInPrivateData(d) {
		return o
	}
	ours := ulpdata.SMBDirect{IRD: smbDepth(o.IRD), ORD: smbDepth(o.ORD)}
	if q != nil {
		if peer, _, err := ulpdata.ParseSMBDirect(q.PrivateData); err == nil {
			ours = ours.Meet(peer)
			o.ORD = min(o.ORD, mpa.Depth(ours.ORD))
		}
	}
	o.PrivateData = slices.Concat(ours.Append(nil), o.PrivateData)
	return o
}

// smbDepth returns a depth as MS-SMBD wants it: above 0, and not left to the ULP.
func smbDepth(depth mpa.Depth) uint32 {
	if depth == mpa.NoNegotiation {
		depth = defaultReadDepth
	}
	return uint32(max(depth, 1))
}

// takeDepths takes the peer's IRD and ORD out of its private data and puts them into
// effect. If the peer sent none, nothing changes.
func (p *Preset) takeDepths(n mpa.Negotiated) mpa.Negotiated {
	if p.depthsInPrivateData(n.Dialect) {
		n, _ = ulpdata.WithSMBDirect(n)
	}
	return n
}
