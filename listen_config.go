package iwarp

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// A ListenConfig makes Listeners, by Listen and NewListener, and takes single connections, by Respond. Its zero value
// is usable.
type ListenConfig struct {
	// Where connections go.
	//
	// RNIC counts and logs what the Listener does. If nil, the PD's; if that is nil too, the Listener makes one. A PD or
	// QP of another RNIC is ErrInvalid, here and when a Request is accepted.
	RNIC *RNIC
	// PD is where Accept creates QPs, unless its AcceptConfig names another. If nil, each connection gets its own.
	PD *PD

	// The startup.
	//
	// Preset, if it is set, supplies what the peers need wherever the settings here, and those of an AcceptConfig, are
	// zero.
	Preset *Preset
	// Dialects are the startup dialects that are served, as far as the RNIC's Kind has them. If empty, all but
	// mpa.DialectRtr: see mpa.ResponderConfig.
	Dialects []mpa.Dialect
	// Messages accepts a private data message in place of a Start Key or Request: see mpa.ResponderConfig.
	Messages bool
	// Markers and NoCRC are what a non-permissive RNIC says of itself when it turns down a revision 0 Request. The
	// RNIC's own preference for markers has the same effect as Markers.
	Markers, NoCRC bool
	// TolerateEarly takes bytes that come after the Request and before our answer for the peer's first FPDU. By default
	// Accept closes the connection then, with ErrEarly. See docs/settings.md.
	TolerateEarly bool

	// Timeouts and limits. A negative limit is an error of Listen, or of the first Accept.
	//
	// RequestTimeout bounds the wait for a peer's whole MPA Request. If zero, 5 s; if negative, there is no bound.
	RequestTimeout time.Duration
	// RTRTimeout bounds how long a peer-to-peer Initiator may owe its Ready-to-Receive indication after our Reply; then
	// the QP ends with ErrNoRTR. If zero, 30 s; if negative, there is no bound.
	RTRTimeout time.Duration
	// MaxHalfOpen bounds the connections that are not up yet. To make room for one more, an old one is closed, first of
	// the address that has most. If zero, 1024. See docs/settings.md.
	MaxHalfOpen int
	// MaxHalfOpenPerSource bounds those of them from one IPv4 address, or one /64 of IPv6: to make room for one more,
	// their oldest is closed. If zero, only MaxHalfOpen bounds them.
	MaxHalfOpenPerSource int
	// MaxPerSource bounds all connections from one such address, established ones too: one more is closed at once. If
	// zero, there is no bound.
	MaxPerSource int

	// The lower layer.
	//
	// Net listens on TCP. The zero value is usable. A Network uses what it can of it, as it says.
	Net net.ListenConfig
	// Stack, if it is set, listens on TCP in place of Net.
	Stack Stack
	// Network, if it is set, carries the connections of Listen in place of TCP and MPA. With a Stack it is ErrInvalid.
	Network SegmentNetwork
}

const (
	defaultMaxHalfOpen = 1024
	defaultRTRTimeout  = 30 * time.Second
)

// rnic returns the RNIC whose limits and counters the connections are of: a new one, if the consumer has named none.
func (cfg *ListenConfig) rnic() *RNIC {
	switch {
	case cfg.RNIC.made() == nil:
		return cfg.RNIC
	case cfg.PD.made() == nil:
		return cfg.PD.rnic
	}
	return NewRNIC(RNICConfig{})
}

func (cfg *ListenConfig) consistent() error {
	if cfg.PD != nil && cfg.PD.made() != nil {
		return cfg.PD.made()
	}
	if cfg.RNIC != nil && cfg.RNIC.made() != nil {
		return cfg.RNIC.made()
	}
	if cfg.RNIC != nil && cfg.PD != nil && cfg.PD.rnic != cfg.RNIC {
		return fmt.Errorf("%w: ListenConfig.PD is of another RNIC than ListenConfig.RNIC", ErrInvalid)
	}
	if err := cfg.check(); err != nil {
		return err
	}
	return cfg.checkOpen()
}

// checkOpen returns an error if what the Listener is to use is closed.
func (cfg *ListenConfig) checkOpen() error {
	if cfg.PD != nil {
		return cfg.PD.checkOpen()
	}
	if cfg.RNIC != nil {
		return cfg.RNIC.checkOpen()
	}
	return nil
}

// named returns the RNIC that the consumer has named, or nil.
func (cfg *ListenConfig) named() *RNIC {
	if cfg.RNIC == nil && cfg.PD == nil {
		return nil
	}
	return cfg.rnic()
}

// check rejects limits that are out of range, and values that are no dialect or no kind of RNIC.
func (cfg *ListenConfig) check() error {
	if err := checkDialects(cfg.Dialects); err != nil {
		return err
	}
	if cfg.RNIC != nil || cfg.PD != nil {
		if err := badOffer("RNICConfig.Kind", checkKind(cfg.rnic().kind)); err != nil {
			return err
		}
	}
	for _, l := range []struct {
		name  string
		value int
	}{
		{"MaxHalfOpen", cfg.MaxHalfOpen},
		{"MaxHalfOpenPerSource", cfg.MaxHalfOpenPerSource},
		{"MaxPerSource", cfg.MaxPerSource},
	} {
		if l.value < 0 {
			return fmt.Errorf("%w: ListenConfig.%s is %d: a limit cannot be negative, and 0 is its default",
				ErrInvalid, l.name,
				l.value)
		}
	}
	return nil
}

// checkNetwork refuses networks that are not TCP's: MPA is defined over TCP. Over any
// other stream of bytes there are Dialer.Initiate, and ListenConfig.NewListener.
func checkNetwork(in, network string) error {
	switch network {
	case "tcp", "tcp4", "tcp6":
		return nil
	}
	if strings.HasPrefix(network, "sctp") {
		return fmt.Errorf("%w: network %q, and no %s.Network: import github.com/goiwarp/iwarp/iwarpsctp, and set "+
			"%s.Network to new(iwarpsctp.Network)",
			ErrInvalid, network, in, in)
	}
	return fmt.Errorf("%w: network %q: there are tcp, tcp4 and tcp6, and what a %s.Network has; "+
		"over any other stream of bytes, such as a Unix socket, connect with Dialer.Initiate and listen with "+
		"ListenConfig.NewListener",
		ErrInvalid, network, in)
}
