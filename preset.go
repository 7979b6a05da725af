package iwarp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/peers"
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
	// Nudge fills in a zero QPConfig.Nudge if a Dialer creates the QP.
	Nudge time.Duration
	// SendEarly fills in a zero QPConfig.SendEarly if a Request is accepted.
	SendEarly time.Duration
	// MaxPDLength bounds the PD_Length of our startup frames, in octets. It includes
	// the 4 octets of the enhanced data of RFC 6581. More private data is a
	// *PresetError before anything is sent. If zero, only the dialect bounds it.
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
	return Preset{}, &OpError{Op: "look up preset", Err: fmt.Errorf("%w: no preset %q: one of %s", ErrInvalid, name, strings.Join(names, ", "))}
}

// Why returns the reason for a setting, and "" if there is none.
func (p *Preset) Why(setting string) string {
	i := slices.IndexFunc(p.Reasons, func(r Reason) bool { return r.Setting == setting })
	if i < 0 {
		return ""
	}
	return p.Reasons[i].Why
}

// A PresetError says that the peer of a preset does not take so much private data.
// Nothing was sent.
type PresetError struct {
	Preset  string // its name
	Setting string // of the Preset
	Given   int    // octets of the consumer's private data
	Limit   int    // octets that the peer has room for
	Why     string
}

// Error says how much there is room for, and why.
func (e *PresetError) Error() string {
	return "iwarp: " + e.text()
}

func (e *PresetError) text() string {
	return fmt.Sprintf("preset %s: %s of private data, there is room for %d: %s", e.Preset, wording.Octets(e.Given), e.Limit, e.Why)
}

// Unwrap returns mpa.ErrOffer and ErrInvalid: a Request can still be answered.
func (e *PresetError) Unwrap() []error { return []error{mpa.ErrOffer, ErrInvalid} }
