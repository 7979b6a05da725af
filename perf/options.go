package perf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// Defaults and limits of Options. The limits bound what an initiator can make
// a responder allocate.
const (
	DefaultDepth    = 128
	DefaultDuration = 300 * time.Millisecond
	DefaultPort     = 18515 // perftest's

	MaxDepth  = 8192
	MaxSize   = 64 << 20
	MaxQPs    = 64
	MaxMemory = 1 << 30 // octets of buffers on each side

	// softRing is how many octets of buffer a QP gets in each direction when
	// no depth is stated: large messages then have fewer under way.
	softRing = 4 << 20
	minSlots = 4
	maxReads = 128 // IRD and ORD at most asked for: what siw has
)

// Options state a measurement. The zero value is the default run.
type Options struct {
	// Ops are the operations to measure. If empty, all of them.
	Ops []Op `json:"ops,omitempty"`

	// Sizes are the message lengths in octets, 1 to MaxSize. If empty, 64,
	// 4096, 65536 and 1048576.
	Sizes []int `json:"sizes,omitempty"`

	// Depth is how many messages may be under way, on each QP, when bandwidth
	// is measured. If zero, DefaultDepth, or fewer for large messages so that a
	// QP's buffers stay within 4 MiB in each direction (but 4 messages at least).
	Depth int `json:"tx_depth,omitempty"`

	// Duration is the time measured for each operation, size, quantity and
	// transport, over all rounds. If zero, DefaultDuration.
	Duration time.Duration `json:"duration_ns,omitempty"`

	// QPs is the number of connections bandwidth is measured over; latency
	// is always measured over one. If zero, 1.
	QPs int `json:"qps,omitempty"`

	// Markers asks for markers in both directions.
	Markers bool `json:"markers,omitempty"`

	// NoCRC turns CRCs off, in both directions.
	NoCRC bool `json:"no_crc,omitempty"`

	// Dialect is the MPA startup dialect to ask for. If zero, that of the Peer, or
	// else mpa.DialectRFC6581, or mpa.DialectRevision0 of a Kind that needs it.
	Dialect mpa.Dialect `json:"dialect,omitempty"`

	// Kind is the kind of RNIC that the initiator is. If zero, mpa.KindPermissive.
	Kind mpa.Kind `json:"kind,omitempty"`

	// Peer is the name of the preset to connect with, as it would be to such a peer.
	// If empty, none. See iwarp.Presets.
	Peer string `json:"peer,omitempty"`

	// Events has the consumers sleep until a completion comes when the latency
	// of Sends and Writes is measured, as perftest's -e. By default they poll for a
	// while first if the messages are short.
	Events bool `json:"events,omitempty"`

	// NoBaseline leaves the measurement of plain TCP out.
	NoBaseline bool `json:"no_baseline,omitempty"`

	// Corrupt makes both ends spoil one octet of what they send over iWARP,
	// so that one can see the verification fail.
	Corrupt bool `json:"corrupt,omitempty"`
}

// resolved returns the options with defaults in the place of zeros, or why
// they cannot be met.
func (o Options) resolved() (Options, error) {
	if len(o.Ops) == 0 {
		o.Ops = AllOps()
	}
	if len(o.Sizes) == 0 {
		o.Sizes = []int{64, 4 << 10, 64 << 10, 1 << 20}
	}
	if o.Duration == 0 {
		o.Duration = DefaultDuration
	}
	if o.QPs == 0 {
		o.QPs = 1
	}
	return o, o.validate()
}

// preset is that of the Peer, or nil.
func (o Options) preset() (*iwarp.Preset, error) {
	if o.Peer == "" {
		return nil, nil
	}
	p, err := iwarp.LookupPreset(o.Peer)
	if err != nil {
		return nil, &OptionError{"peer", err.Error()}
	}
	return &p, nil
}

// An OptionError says which option cannot be met, and why.
type OptionError struct {
	Option string // as on the command line, without dashes
	Reason string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("perf: option %s: %s", e.Option, e.Reason)
}

// validate checks resolved options.
func (o Options) validate() error {
	for _, op := range o.Ops {
		if op < Send || op > Read {
			return &OptionError{"op", fmt.Sprintf("no operation %v", op)}
		}
	}
	for _, size := range o.Sizes {
		if size < 1 || size > MaxSize {
			return &OptionError{"size", fmt.Sprintf("%d octets is not between 1 and %d", size, MaxSize)}
		}
	}
	switch {
	case o.Depth < 0 || o.Depth == 1 || o.Depth > MaxDepth:
		return &OptionError{"depth", fmt.Sprintf("%d is not between 2 and %d", o.Depth, MaxDepth)}
	case o.QPs < 0 || o.QPs > MaxQPs:
		return &OptionError{"qps", fmt.Sprintf("%d is not between 1 and %d", o.QPs, MaxQPs)}
	case o.Duration < 0:
		return &OptionError{"duration", "is negative"}
	case o.Dialect != 0 && !slices.Contains(mpa.Dialects(), o.Dialect):
		return &OptionError{"dialect", fmt.Sprintf("there is no %v", o.Dialect)}
	case o.memory() > MaxMemory:
		return &OptionError{"depth", fmt.Sprintf("depth, size and qps together need %d MiB of buffers on each side: %d MiB is the limit",
			o.memory()>>20, MaxMemory>>20)}
	}
	_, err := o.preset()
	return err
}

// slots returns how many messages of that size a QP has buffers for, in each
// direction: that is how many may be under way.
func (o Options) slots(size int) int {
	if o.Depth != 0 {
		return o.Depth
	}
	return min(DefaultDepth, max(minSlots, softRing/size))
}

// maxSlots returns the most slots that any of the sizes has.
func (o Options) maxSlots() int {
	most := 0
	for _, size := range o.Sizes {
		most = max(most, o.slots(size))
	}
	return most
}

// ring returns the octets of buffer that a QP needs in each direction.
func (o Options) ring() int64 {
	most := int64(0)
	for _, size := range o.Sizes {
		most = max(most, int64(size)*int64(o.slots(size)))
	}
	return most
}

// memory returns the octets of buffer that one side needs in all.
func (o Options) memory() int64 { return 2 * o.ring() * int64(o.QPs) }

// reads returns the IRD and ORD to ask for: the Peer may have no more.
func (o Options) reads() int {
	most := maxReads
	if p, err := o.preset(); err == nil && p != nil && p.Initiate.ORD > 0 {
		most = int(p.Initiate.ORD)
	}
	return min(o.maxSlots(), most)
}

// ParseSize reads a number of octets; a K or M behind it means 2^10 or 2^20.
func ParseSize(text string) (int, error) {
	digits, shift := text, 0
	switch {
	case strings.HasSuffix(text, "K"), strings.HasSuffix(text, "k"):
		digits, shift = text[:len(text)-1], 10
	case strings.HasSuffix(text, "M"), strings.HasSuffix(text, "m"):
		digits, shift = text[:len(text)-1], 20
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > MaxSize>>shift {
		return 0, &OptionError{"size", fmt.Sprintf("%q is not a number of octets between 1 and 64M", text)}
	}
	return n << shift, nil
}
