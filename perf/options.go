package perf

import (
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// Defaults and limits of Options. The limits bound what an initiator can make
// a responder allocate.
const (
	DefaultDepth    = 128
	DefaultRXDepth  = 512                    // perftest's too
	DefaultDuration = 200 * time.Millisecond // the least whose ratios are judged
	DefaultPort     = 7174                   // that of iwarp serve

	MinDepth = 1
	MaxDepth = 8192

	// MinReceives is how many receives a QP has at least, and buffers in each direction: the answer of a ping-pong may
	// come before the receive is posted that takes the place of the last answer's.
	MinReceives = 2

	MaxSize   = 64 << 20
	MaxInline = iwarp.MaxInline
	MaxQPs    = 64
	MaxMemory = 1 << 30 // bytes of buffers on each side

	// softRing is how many bytes of buffer a QP gets in each direction when
	// no depth is stated: large messages then have fewer under way.
	softRing = 16 << 20
	minSlots = 4

	// softReceives is how many bytes of buffer receives in addition to the depth get when their number is not
	// stated: what a processor's cache holds beside other things.
	softReceives = 512 << 10
	maxReads     = 128 // IRD and ORD at most asked for: what siw has

	// latencySlots is how many buffers latency is measured with. One message is under way
	// at a time.
	latencySlots = 4
)

// Options state a measurement. The zero value is the default run.
type Options struct {
	// Network is what the QPs are connected over: "tcp"; "sctp", which is SCTP in UDP, or "sctp:kernel",
	// where there are neither markers nor CRCs of MPA; or "usertcp", a TCP in user space, with both ends in
	// this process. If empty, "tcp". The plain TCP that is measured beside it is always the system's.
	Network string `json:"network,omitempty"`

	// Ops are the operations to measure. If empty, AllOps: Send, Write and Read.
	Ops []Op `json:"ops,omitempty"`

	// Sizes are the message lengths in bytes, 1 to MaxSize. If empty, 64,
	// 4096, 65536 and 1048576. An operation that has one size, as Atomic, is measured with that.
	Sizes []int `json:"sizes,omitempty"`

	// Depth is how many messages may be under way, on each QP, when bandwidth
	// is measured. If zero, DefaultDepth, or fewer for large messages so that a
	// QP's buffers stay within 16 MiB in each direction, and those of many QPs within
	// 512 MiB (but 4 messages at least). Plain TCP's Sends and Writes have no such bound.
	Depth int `json:"depth,omitempty"`

	// RXDepth is how many messages each QP has receives for when the bandwidth of Send, or of Write-Imm, is measured:
	// how far a sender may be ahead of what its peer has taken out of its CQ. It is the depth at least. If zero,
	// DefaultRXDepth, or four times the depth if that is more, but no more than fit into 512 KiB.
	RXDepth int `json:"rx_depth,omitempty"`

	// Duration is the time measured for each operation, size, quantity and transport. It
	// is cut into 5 to 100 slices of 10 ms, or longer ones if it is longer than 1 s. Over a path with a long round trip
	// there are longer and fewer slices, 3 at least, and it may take three times as long. If
	// zero, DefaultDuration, unless there are Iters.
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

	// Peer is the name of the preset to connect with. If empty, none. See iwarp.Presets.
	Peer string `json:"peer,omitempty"`

	// Iters is the number of messages of each operation, size, quantity and transport, on
	// each connection, whatever the Duration. They are cut into slices of 40 messages, but 5 to 40 of them (3 of
	// bandwidth over a path with a long round trip), and rounded up to a multiple of the number of slices, with 2
	// messages in each at least. If zero, the Duration decides.
	Iters int `json:"iters,omitempty"`

	// Bidirectional has bandwidth measured in both directions at once, and summed up. Plain
	// TCP then sends what Reads would fetch without being asked.
	Bidirectional bool `json:"bidirectional,omitempty"`

	// Inline has Sends and Writes of up to so many bytes, up to MaxInline, copied with
	// their work requests.
	Inline int `json:"inline,omitempty"`

	// PostList is how many messages are posted together while bandwidth is measured, if so
	// many may go under way. If zero, 1.
	PostList int `json:"post_list,omitempty"`

	// CQMod is after how many messages one asks for a completion while bandwidth is
	// measured, but no more than the depth. If zero, a quarter of the depth.
	CQMod int `json:"cq_mod,omitempty"`

	// CC is the congestion control of all sockets that are measured, at both ends, such as
	// reno, bbr or cubic. If empty, each system's default stays. Only Linux lets one choose.
	CC string `json:"cc,omitempty"`

	// Poll has both ends poll before they sleep, over plain TCP too. By default plain TCP sleeps until something
	// has come, and iWARP spins for up to 100 us first.
	Poll bool `json:"poll,omitempty"`

	// KeepDisturbed has pairs of slices count that the rest of the machine disturbed, and no
	// ratio called inconclusive. The quartiles then say what the ratios are worth.
	KeepDisturbed bool `json:"keep_disturbed,omitempty"`

	// NoBaseline leaves out the measurement of plain TCP.
	NoBaseline bool `json:"no_baseline,omitempty"`

	// Reorder is how many packets in a hundred a link between the initiator's QPs and the responder delivers late.
	// There is such a link for SCTP in UDP, and for TCP in user space.
	Reorder int `json:"reorder,omitempty"`

	// Corrupt makes both ends spoil one byte of what they send over iWARP,
	// so that one can see the verification fail.
	Corrupt bool `json:"corrupt,omitempty"`
}

// Resolved returns the options as a Report has them, with defaults in the place of zeros, or why
// they cannot be met.
func (o Options) Resolved() (Options, error) {
	if o.Network == "" {
		o.Network = network.TCP
	}
	if len(o.Ops) == 0 {
		o.Ops = AllOps()
	}
	if len(o.Sizes) == 0 {
		o.Sizes = DefaultSizes()
	}
	if o.Duration == 0 && o.Iters == 0 {
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

// An OptionError says which option cannot be met, and why. Its text names the option as on the command line.
type OptionError struct {
	Option string // as on the command line, without dashes
	Reason string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("perf: --%s: %s", e.Option, e.Reason)
}

// validate checks resolved options.
func (o Options) validate() error {
	if err := o.validateLoad(); err != nil {
		return err
	}
	switch {
	case o.Duration < 0:
		return &OptionError{"duration", "is negative"}
	case o.Dialect != 0 && !slices.Contains(mpa.Dialects(), o.Dialect):
		return &OptionError{"dialect", fmt.Sprintf("there is no %v", o.Dialect)}
	}
	if err := o.fits(MaxMemory); err != nil {
		return err
	}
	if err := validateCC(o.CC); err != nil {
		return err
	}
	if err := o.validateNetwork(); err != nil {
		return err
	}
	_, err := o.preset()
	return err
}

// fits checks that one side's buffers have so many bytes at most.
func (o Options) fits(memory int64) error {
	if o.memory() <= memory {
		return nil
	}
	return &OptionError{"depth", fmt.Sprintf("depth, rx-depth, size and qps together need %d MiB of buffers on each side: %d MiB is the limit", o.memory()>>20, memory>>20)}
}

// validateLoad checks what is sent, and how much of it at once.
func (o Options) validateLoad() error {
	for _, op := range o.Ops {
		if !op.valid() {
			return &OptionError{"op", fmt.Sprintf("no operation %v", op)}
		}
	}
	for _, size := range o.Sizes {
		if size < 1 || size > MaxSize {
			return &OptionError{"size", fmt.Sprintf("%d bytes is not between 1 and %d", size, MaxSize)}
		}
	}
	// 0 is the default of each.
	for _, n := range []struct {
		option             string
		value, least, most int
	}{
		{"depth", o.Depth, MinDepth, MaxDepth}, {"rx-depth", o.RXDepth, MinReceives, MaxDepth},
		{"qps", o.QPs, 1, MaxQPs}, {"iters", o.Iters, 1, maxCount},
		{"inline", o.Inline, 0, MaxInline}, {"post-list", o.PostList, 1, MaxDepth}, {"cq-mod", o.CQMod, 1, MaxDepth},
	} {
		if n.value != 0 && (n.value < n.least || n.value > n.most) {
			return &OptionError{n.option, fmt.Sprintf("%d is not between %d and %d", n.value, n.least, n.most)}
		}
	}
	if depth := o.maxDepth(); o.RXDepth != 0 && o.RXDepth < depth {
		return &OptionError{"rx-depth", fmt.Sprintf(
			"%d receives are fewer than the %d messages that --depth lets be under way", o.RXDepth, depth)}
	}
	return nil
}

// DefaultSizes are those that are measured unless others are asked for.
func DefaultSizes() []int { return []int{64, 4 << 10, 64 << 10, 1 << 20} }

// AllSizes are the powers of two from 2 to 8 MiB, as perftest's -a has them.
func AllSizes() []int {
	var all []int
	for size := 2; size <= 8<<20; size *= 2 {
		all = append(all, size)
	}
	return all
}

// ParseSize reads a message size in bytes, 1 to MaxSize, which a K or M at its end
// multiplies by 2^10 or 2^20.
func ParseSize(text string) (int, error) {
	n, err := wording.ParseBytes(text)
	if err != nil || n < 1 || n > MaxSize {
		return 0, &OptionError{"size", fmt.Sprintf("%q is not a number of bytes between 1 and 64M, such as 64K", text)}
	}
	return int(n), nil
}
