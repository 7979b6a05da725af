package iwarp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// A Preset is what to offer to one kind of peer so that a connection with it comes
// up, each setting with its reason. Put it into a Dialer, a ListenConfig or an
// AcceptConfig: it is used wherever their own settings are zero, and overrules none
// that the consumer has made. (Of a bool, true is a setting.)
type Preset struct {
	// Name is for command lines; Peer says whom it is for.
	Name, Peer string

	// Initiate and Accept take the place of zero fields of the MPA offer of a Dialer
	// and of an AcceptConfig.
	Initiate, Accept mpa.Offer
	// Dialects are those in which the peer starts as Initiator. A Listener with the
	// preset serves these, if its own are empty.
	Dialects []mpa.Dialect
	// NoFallback keeps a Dialer from trying again with revision 1.
	NoFallback bool
	// Nudge takes the place of a zero QPConfig.Nudge where a Dialer creates the QP.
	Nudge time.Duration
	// MaxPDLength bounds the PD_Length of our startup frames in octets, the 4 of the
	// enhanced data of RFC 6581 included. More private data is a *PresetError before
	// anything is sent. If zero, the dialect alone bounds it.
	MaxPDLength int
	// SMBDirect has our startup frames of RFC 5044 begin with IRD and ORD as in MS-SMBD,
	// in front of the consumer's private data. The peer's IRD bounds our ORD; behind
	// the startup its depths are Negotiated's, and no longer in its private data. See
	// mpa.SMBDirect.
	SMBDirect bool

	// Reasons has every setting of the above, and others that are best left as they
	// are. The order is that of the settings.
	Reasons []Reason
}

// A Reason is why a Preset does something, or leaves it alone.
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
// They are from what was measured with Linux 6.1 for siw, and from reading the
// drivers for the others. Preset.Reasons has the details.
func Presets() []Preset {
	return []Preset{presetSIW(), presetCXGB4(), presetFreeBSD(), presetIRDMA(), presetQEDR(), presetWindows()}
}

// LookupPreset returns the preset of a name: "siw", "cxgb4", "freebsd", "irdma",
// "qedr" or "windows-v1". The error wraps ErrInvalid.
func LookupPreset(name string) (Preset, error) {
	all := Presets()
	var names []string
	for _, p := range all {
		if strings.EqualFold(p.Name, name) {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, fmt.Errorf("iwarp: %w: no preset %q: one of %s", ErrInvalid, name, strings.Join(names, ", "))
}

// Why returns the reason for a setting, and "" if there is none.
func (p *Preset) Why(setting string) string {
	i := slices.IndexFunc(p.Reasons, func(r Reason) bool { return r.Setting == setting })
	if i < 0 {
		return ""
	}
	return p.Reasons[i].Why
}

// A PresetError is private data that the peer of a preset does not take. Nothing was
// sent.
type PresetError struct {
	Preset  string // its name
	Setting string // of the Preset
	Given   int    // octets of the consumer's private data
	Limit   int    // octets that there is room for
	Why     string
}

// Error says how much there is room for, and why.
func (e *PresetError) Error() string {
	return fmt.Sprintf("iwarp: preset %s: %d octets of private data, there is room for %d: %s", e.Preset, e.Given, e.Limit, e.Why)
}

// Unwrap returns mpa.ErrOffer: a Request can still be answered.
func (e *PresetError) Unwrap() error { return mpa.ErrOffer }
