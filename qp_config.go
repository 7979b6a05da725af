package iwarp

import (
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
)

// Sizes that do not change.
const (
	// MaxQueueDepth is the largest depth of a Send, Receive or Shared Receive Queue, in entries.
	MaxQueueDepth = 1 << 16
	// MaxSGE is how many scatter/gather elements a work request may have. Up to four take no memory of their own.
	MaxSGE = engine.MaxSGE
	// MaxInline is the most inline data that a QP may allow (QPConfig.MaxInline), in bytes.
	MaxInline = 4 << 10
	// AtomicLen is how many bytes an Atomic Operation works on: a word, at an address that is a multiple of it.
	AtomicLen = 8
	// RemoteLen is the length of a Remote's wire form, in bytes.
	RemoteLen = 16

	defaultDepth     = 128 // entries
	defaultMaxInline = 256 // bytes
)

// QPConfig configures a Queue Pair. The zero value is usable. A value out of range is ErrInvalid. docs/settings.md has
// more about some.
type QPConfig struct {
	// Queues.
	//
	// SendCQ and RecvCQ get the completions. If one is nil, the other serves both queues. If both are nil, the QP gets
	// one CQ of its own, large enough for all that can be outstanding.
	SendCQ, RecvCQ *CQ
	// SRQ, if it is set, supplies the receives in place of a queue of the QP's own.
	SRQ *SRQ
	// SendDepth and RecvDepth are the entries of the queues: 1 to MaxQueueDepth. If zero, 128.
	SendDepth, RecvDepth int
	// MaxInline bounds inline data, in bytes: at most the constant MaxInline. If zero, 256; if negative, no inline data.
	MaxInline int

	// Messages and requests.
	//
	// Receives, if it is not zero, has the QP post its receives: take the messages with QP.Receive or QP.Messages.
	Receives Receives
	// RNR (receiver not ready), if it is not zero, lets messages wait while no receive is posted for them. By default
	// such a message ends the connection (RFC 5041, section 7.1).
	RNR RNRPolicy
	// Confirm completes a Send, a Write or Immediate Data when the peer has carried it out, as on InfiniBand, and takes
	// a round trip for it. By default, when the lower layer has taken it, as RFC 5041 says.
	Confirm bool
	// CheckLate checks the memory of a request when it is carried out, as RDMA hardware does: a failure ends the
	// connection. By default the post is refused.
	CheckLate bool
	// Deny is what the peer may not do here, whatever memory was registered with: RemoteWrite, RemoteRead, RemoteAtomic
	// or several. A peer that tries it ends the connection by a Terminate.
	Deny Access

	// Spin bounds how long a wait polls the socket before it sleeps: any positive duration. Spinning waits use at most
	// half of the program's CPUs. If zero, RNICConfig.Spin; if negative, a wait sleeps at once. See docs/settings.md.
	Spin time.Duration

	// Timeouts.
	//
	// IdleTimeout ends a connection over which nothing was sent or received for that long, with ErrIdle. If zero, it may
	// be idle.
	IdleTimeout time.Duration
	// KeepAlive, if it is enabled, has TCP probe a silent peer, in place of what Dialer.Net or ListenConfig.Net say.
	KeepAlive net.KeepAliveConfig
	// UserTimeout bounds how long sent bytes may stay unacknowledged (TCP_USER_TIMEOUT of Linux). If zero, the system's
	// bound holds.
	UserTimeout time.Duration
	// GapTimeout, over SCTP or another SegmentStream, bounds the wait for a missing segment, which ends with ErrGap. If
	// zero, 1 min; if negative, there is no limit.
	GapTimeout time.Duration

	// Closing: docs/endings.md.
	//
	// CloseTimeout bounds how long a close goes on without progress, and how long the peer may take to close its half
	// after a Terminate. If zero, 5 s.
	CloseTimeout time.Duration
	// CloseLimit bounds a Close as a whole, whatever its progress. If zero, 1 min; if negative, there is no limit.
	CloseLimit time.Duration
	// Linger is how long our direction stays open with nothing to send when the peer has closed its own. If zero, 100
	// ms, or 0 if the program has nothing to answer; if negative, the connection ends when what was posted is finished.
	Linger time.Duration
	// HalfClose leaves our direction open when the peer has closed its own, until Close, whatever Linger is.
	HalfClose bool

	// The wire, and peers that need something special. A Preset has the settings for a known peer.
	//
	// FPDUs says how FPDUs are placed in the segments of TCP. If zero, FPDUsDefault: aligned, except on loopback.
	FPDUs FPDUs
	// Stream asks for markers and a version of DDP and RDMAP; QP.ModifyStream changes it until the QP is connected.
	// CreateQP returns ErrVersion or ErrMarkersRequired for what the RNIC cannot do.
	Stream StreamAttr
	// Nudge is how long an Initiator waits for an answer to its first FPDU, before it sends an empty Write to wake up
	// the peer. If zero, 10 ms where the Reply shows that the peer is siw; if negative, never.
	Nudge time.Duration
	// SendEarly is how long after its Reply a Responder sends although the Initiator has not sent its first FPDU, which
	// RFC 5044, section 7.1.2, forbids. If zero or negative, it waits: ErrAwaitingInitiator.
	SendEarly time.Duration
	// StrictRTR refuses a peer-to-peer Initiator whose first message is not the Ready-to-Receive indication that was
	// agreed on. By default that is tolerated.
	StrictRTR bool

	// UserData is the program's own: QP.UserData returns it, and nothing else looks at it.
	UserData any
}

func (c *QPConfig) fill() error {
	if err := c.Receives.fill(c); err != nil {
		return err
	}
	c.SendDepth = orDefault(c.SendDepth, defaultDepth)
	c.RecvDepth = orDefault(c.RecvDepth, defaultDepth)
	c.MaxInline = max(orDefault(c.MaxInline, defaultMaxInline), 0)
	c.CloseTimeout = orDefault(c.CloseTimeout, 5*time.Second)
	c.CloseLimit = orDefault(c.CloseLimit, time.Minute)
	c.GapTimeout = orDefault(c.GapTimeout, time.Minute)
	c.RNR.fill()
	switch {
	case c.SendDepth < 0 || c.SendDepth > MaxQueueDepth || c.RecvDepth < 0 || c.RecvDepth > MaxQueueDepth:
		return fmt.Errorf("%w: SendDepth %d and RecvDepth %d must be 1 to %d", ErrInvalid, c.SendDepth, c.RecvDepth,
			MaxQueueDepth)
	case c.CloseTimeout < 0:
		return fmt.Errorf("%w: QPConfig.CloseTimeout is %v, and is to be positive, or 0 for 5 s",
			ErrInvalid, c.CloseTimeout)
	case c.IdleTimeout < 0:
		return fmt.Errorf("%w: QPConfig.IdleTimeout is %v, and is to be positive, or 0 for none",
			ErrInvalid, c.IdleTimeout)
	case c.UserTimeout < 0:
		return fmt.Errorf("%w: QPConfig.UserTimeout is %v, and is to be positive, or 0 for the system's", ErrInvalid,
			c.UserTimeout)
	case c.MaxInline > MaxInline:
		return fmt.Errorf("%w: a MaxInline of %d bytes; %d at most", ErrInvalid, c.MaxInline, MaxInline)
	case min(c.RNR.Bytes, c.RNR.Messages) < 0 || c.RNR.Wait < 0:
		return fmt.Errorf("%w: QPConfig.RNR is %+v, and is to be positive, or 0", ErrInvalid, c.RNR)
	case c.Deny&^deniable != 0:
		return errDeny(c.Deny)
	case c.FPDUs > FPDUsLarge:
		return fmt.Errorf("%w: QPConfig.FPDUs is %d, and is to be one of FPDUsDefault (%d) to FPDUsLarge (%d)",
			ErrInvalid,
			c.FPDUs, FPDUsDefault, FPDUsLarge)
	}
	return nil
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

// An RNRPolicy bounds what waits while a QP is not ready to receive (RNR): Sends and Immediate Data that find no
// receive, and every Write, Read and Atomic Operation of the peer after them, so that the order is kept. Answers to
// requests of this side, and a Terminate, overtake them.
//
// When the bound is reached, nothing more is received, and the lower layer holds the peer back. Then answers and the
// peer's close wait too. Two programs that both wait for one of these may wait for ever: make the bound larger than
// what the peer has under way, or set QPConfig.IdleTimeout.
//
// The bound is exceeded by what was received in one piece, up to 256 KiB over TCP. All of it counts in
// Limits.HeldBytes. QP.Close and Shutdown, while something waits, end the connection with a TerminateError 0x1202 at
// both ends; with QPConfig.Receives what waits is discarded. Where an SRQ has given the QP its share (SRQConfig.PerQP),
// nothing waits. See docs/settings.md.
type RNRPolicy struct {
	// Bytes bounds the bytes that wait. Each segment counts its header and 200 more. If zero, and another field is
	// not, 1 MiB.
	Bytes int
	// Messages bounds the messages, Writes among them. If zero, and another field is not, 1024.
	Messages int
	// Wait bounds for how long messages wait and no receive is posted for any of them: then the connection ends as by
	// Close. When the peer has closed its half, it is 1 s at most. If zero, there is no limit.
	Wait time.Duration
}

func (u *RNRPolicy) fill() {
	if *u != (RNRPolicy{}) {
		u.Bytes = orDefault(u.Bytes, 1<<20)
		u.Messages = orDefault(u.Messages, 1024)
	}
}

// FPDUs says how the FPDUs that a QP sends are placed in the segments of TCP. Receivers
// take them either way.
type FPDUs uint8

const (
	// FPDUsDefault is FPDUsAligned, but FPDUsUnaligned on loopback, and while the EMSS is not a multiple of four.
	FPDUsDefault FPDUs = FPDUs(driver.FPDUsDefault)
	// FPDUsAligned begins each TCP segment with an FPDU and fills it with whole ones (Header Alignment: RFC 5044,
	// section 5.1 and Appendix A). It takes Linux and a TCP socket of ours, or a Stack; else it is FPDUsUnaligned.
	FPDUsAligned FPDUs = FPDUs(driver.FPDUsAligned)
	// FPDUsUnaligned has FPDUs that fit into a TCP segment and follow each other wherever
	// TCP cuts them. With many small messages TCP can send fewer segments.
	FPDUsUnaligned FPDUs = FPDUs(driver.FPDUsUnaligned)
	// FPDUsLarge has FPDUs of up to 64 KiB, whatever the size of TCP's segments: less work for two ends in software. An
	// RDMA adapter has to hold what it receives of an FPDU until that is whole.
	FPDUsLarge FPDUs = FPDUs(driver.FPDUsLarge)
)

// mayAlign reports whether the FPDUs of a connection that is not there yet may come to be
// aligned.
func (f FPDUs) mayAlign() bool { return f == FPDUsDefault || f == FPDUsAligned }

func isLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}
