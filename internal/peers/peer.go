package peers

import (
	"slices"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// A Peer is one implementation.
type Peer struct {
	Name    string // a word for command lines: "siw"
	Title   string // a few words: "siw (Linux)"
	Product string // what it is: hardware, and the driver's system
	Source  string // what the row rests on

	Behavior
	// Assumed names the fields of Behavior whose values nobody has measured or read,
	// or that a parameter of the driver changes.
	Assumed []string

	Advice
}

// Advice is what to set so that a connection with a peer comes up.
type Advice struct {
	// Initiate and Accept are fields of an offer to set, in either role. Those that
	// are zero are best left alone.
	Initiate mpa.Offer
	Accept   mpa.Answer
	// Dialects are those in which the peer starts as Initiator.
	Dialects []mpa.Dialect
	// NoFallback: a connection that it closes is not worth another attempt with
	// revision 1.
	NoFallback bool
	// Nudge is after how long a silent peer is nudged; negative is never, 0 is left to the default.
	Nudge time.Duration
	// SendEarly: as a Responder to its A=0, send that long after the Reply even if its
	// first FPDU has not come; 0: never.
	SendEarly time.Duration
	// Reasons has every setting of the above, those limits of Behavior that an
	// offer keeps to, and others that are best left as they are.
	Reasons []Reason
}

// A Reason is why to set something, or to leave it alone.
type Reason struct {
	Setting string // as in iwarp.Preset, like "Initiate.RTR"
	Why     string
}

// KernelMaxPDLength is the highest PD_Length, in bytes, that kernels were seen to take: siw and the drivers of
// Chelsio's RNICs.
const KernelMaxPDLength = 256

// All returns the peers that are known. The caller may change them.
func All() []Peer {
	return []Peer{siw(), cxgb4(), freebsd(), irdma(), qedr(), windows()}
}

// Lookup returns the peer with a name, and false if there is none.
func Lookup(name string) (Peer, bool) {
	all := All()
	i := slices.IndexFunc(all, func(p Peer) bool { return p.Name == name })
	if i < 0 {
		return Peer{}, false
	}
	return all[i], true
}

// Knows reports whether the values of some fields of Behavior are known.
func (p *Peer) Knows(fields ...string) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { return slices.Contains(p.Assumed, f) })
}
