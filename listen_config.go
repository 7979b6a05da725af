package iwarp

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// ListenConfig configures a Listener, or Respond. The zero value is usable.
type ListenConfig struct {
	// RNIC counts and logs what the Listener does. If nil, the PD's; if that is nil
	// too, the Listener makes one. A PD or QP of another RNIC than that of RNIC or PD is
	// ErrInvalid, here and when a Request is accepted.
	RNIC *RNIC
	// PD is where Accept creates QPs, unless its AcceptConfig names another. If nil,
	// each connection gets a Protection Domain of its own.
	PD *PD
	// Preset, if it is set, supplies what the peers need wherever the settings here,
	// and those of an AcceptConfig, are zero.
	Preset *Preset
	// RequestTimeout bounds the wait for a peer's whole MPA Request. If zero, 5 s;
	// if negative, there is no bound.
	RequestTimeout time.Duration
	// Dialects are the startup dialects that are served, as far as the RNIC's Kind
	// has them. If empty, all but mpa.DialectRtr: see mpa.ResponderConfig.
	Dialects []mpa.Dialect
	// Messages accepts a private data message in place of a Start Key or Request: see
	// mpa.ResponderConfig.
	Messages bool
	// Markers and NoCRC are what a non-permissive RNIC says of itself when it turns
	// down a revision 0 Request. The RNIC's own preference for markers has the same
	// effect as Markers.
	Markers, NoCRC bool
	// TolerateEarly accepts a peer that sends bytes after its Request and before our
	// answer, and takes them for its first FPDU. By default Accept closes the connection
	// then and returns an error that wraps ErrEarly: such bytes cannot be FPDUs by right,
	// as the peer does not know yet whether we want markers and CRCs. They are found on
	// sockets of Unix-like systems, and where a bufio.Reader has read ahead; elsewhere
	// they are tolerated. A rejected connection's bytes are the consumer's in any case.
	TolerateEarly bool
	// RTRTimeout bounds how long the Initiator of a peer-to-peer connection may owe its
	// Ready-to-Receive indication after our Reply; RNICs send it by themselves. After that time
	// the QP ends with an error that wraps ErrNoRTR. If zero, 30 s; if negative, there is no
	// bound. Other Initiators may take their time: see QPConfig.IdleTimeout.
	RTRTimeout time.Duration
	// A negative value of this limit and those after it is an error of Listen, or of the
	// first Accept.
	//
	// MaxHalfOpen bounds the connections that are not up yet: those whose Request has not
	// arrived or waits for Accept, and those that owe a frame after our answer, as they do in
	// some dialects, or the RTR indication of a peer-to-peer connection. To make room for one
	// more, the address that has most of them loses one: the oldest that owes us something or,
	// if none does and the address has more than the new one's, the oldest Request that waits
	// for Accept. If it is the new one's own address, and none from there owes us anything, the
	// new one is closed. If zero, 1024.
	MaxHalfOpen int
	// MaxHalfOpenPerSource bounds those of them that come from one address: to make
	// room for one more, the oldest from the same address is closed. If zero, only
	// MaxHalfOpen bounds them. All IPv6 addresses with the same first 64 bits count as
	// one address; networks without IP addresses are not bounded.
	MaxHalfOpenPerSource int
	// MaxPerSource bounds the connections from one address altogether: half-open ones,
	// Requests that were not answered yet, and established ones. One more is closed at
	// once. If zero, there is no bound.
	MaxPerSource int
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
// other stream of bytes there are Dialer.Initiate, and NewListener.
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
		"over any other stream of bytes, such as a Unix socket, connect with Dialer.Initiate and listen with NewListener",
		ErrInvalid, network, in)
}
