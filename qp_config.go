package iwarp

import (
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/driver"
)

// Bounds and defaults of queues.
const (
	MaxQueueDepth    = 1 << 16 // entries
	MaxInline        = 4 << 10 // bytes
	defaultDepth     = 128     // entries
	defaultMaxInline = 256     // bytes
)

// QPConfig configures a Queue Pair. The zero value is usable.
type QPConfig struct {
	// SendCQ and RecvCQ get the completions. If one is nil, the other serves both
	// queues. If both are nil, the QP gets one CQ of its own, large enough for all
	// that can be outstanding.
	SendCQ, RecvCQ *CQ
	// SRQ, if it is set, supplies the receives in place of a queue of the QP's own.
	SRQ *SRQ
	// SendDepth and RecvDepth are the entries of the queues, at most
	// MaxQueueDepth. If zero, 128.
	SendDepth, RecvDepth int
	// MaxInline bounds inline data, in bytes; it is at most the constant MaxInline.
	// If zero, 256; if negative, no inline data is allowed.
	MaxInline int
	// CloseTimeout bounds how long a close goes on without progress, and how long the
	// peer may take to close its half after a Terminate. If zero, 5 s. Progress is a
	// request that completes, a message that is delivered, or 16 KiB of our work, of Reads
	// that were there when the close began, or of what the peer sends; our FIN is progress
	// too. After half of the time, no more Reads of the peer's are taken.
	CloseTimeout time.Duration
	// CloseLimit bounds a Close as a whole, whatever its progress. If zero, 1 min; if
	// negative, there is no limit.
	CloseLimit time.Duration
	// GapTimeout, over SCTP or another SegmentStream, bounds the wait for a segment when others have come that were
	// sent after it: the connection ends with a TerminateError that wraps ErrGap. A segment that the network has lost
	// comes again, in a second or a few. If zero, 1 min; if negative, there is no limit.
	GapTimeout time.Duration
	// IdleTimeout ends a connection over which nothing was sent or received for that
	// long, with an error that wraps ErrIdle: a peer that does nothing costs as much as
	// one that works (RFC 5042, section 6.4.2). What Nudge has us send does not count. If
	// zero, a connection may be idle. So may one that holds its peer back (RNR below), until a receive is posted.
	IdleTimeout time.Duration
	// KeepAlive, if it is enabled, has TCP probe a peer that says nothing, in place of
	// what Dialer.Net or ListenConfig.Net have set. UserTimeout, if it is not zero,
	// bounds how long bytes may stay unacknowledged before TCP gives the connection
	// up: TCP_USER_TIMEOUT of Linux. Neither has an effect on systems and connections
	// that do not have it.
	KeepAlive   net.KeepAliveConfig
	UserTimeout time.Duration
	// Nudge is how long an Initiator that has heard nothing after its first FPDU
	// waits before it sends an empty RDMA Write to wake up a Responder that may have missed
	// it: Linux's siw does, now and then. If zero, 10 ms where the Reply shows that the peer
	// is siw (RTR indications by Write and Read were offered, and it names Write alone), and
	// never otherwise; if negative, never. The preset for siw sets it. It is never sooner
	// than after three times the time that the startup frames took (counted up to 1 s).
	//
	// The peer's consumer does not notice. Its RDMA layer does: RFC 5041, section 5.2,
	// forbids to check the STag of an empty Write, and a peer that checks it ends the
	// connection. The error then names this setting.
	Nudge time.Duration
	// StrictRTR refuses a peer-to-peer Initiator whose first message is not the
	// Ready-to-Receive indication that was agreed on. By default that is tolerated.
	StrictRTR bool
	// Linger is how long our direction stays open with nothing to send when the peer
	// has closed its own (EventHalfClosed), so that more work can be posted. If zero,
	// 100 ms; if negative, the connection ends when what was posted is finished, as
	// with the RDMA verbs.
	Linger time.Duration
	// SendEarly is how long after its Reply a Responder begins to send although the Initiator's first FPDU has not
	// come, where the Initiator chose the client-server model (A=0) or a revision before 2. RFC 5044, section 7.1.2,
	// forbids it, and an RNIC that is not yet in Full Operation may end the connection over it: Linux's siw does so
	// itself, and takes it from others unless it comes together with the Reply. If zero (and no Preset knows better) or
	// negative, such a Responder's requests wait: see ErrAwaitingInitiator.
	SendEarly time.Duration
	// HalfClose leaves our direction open when the peer has closed its own, until
	// Close, whatever Linger is. The peer's Close does not wait for longer than its
	// CloseTimeout.
	HalfClose bool
	// Receives, if it is not zero, has the QP post its receives: take the messages with QP.Receive or QP.Messages.
	Receives Receives
	// RNR, if it is not zero, has Sends and Immediate Data wait while no receive is posted for them, as on
	// InfiniBand, where the receiver is "not ready" and the peer tries again. See RNRPolicy.
	RNR RNRPolicy
	// Confirm has a Send, a Write or Immediate Data complete when the peer has carried it out, as on InfiniBand, and
	// not when the lower layer has taken it, which is all that RFC 5041 asks. A request that the peer refuses then
	// fails itself, with StatusRemoteAccess or StatusRemoteOperation; without Confirm it would have succeeded, and
	// the connection would have ended after it. An empty RDMA Read after the requests asks the peer, which needs to
	// know nothing of it. It counts in ORD and IRD: with an ORD of 0 there are no confirmations. They take a round
	// trip, and two more FPDUs for what is sent together. Linux's siw answers such a Read wrongly while it sends
	// (docs/interop.md).
	//
	// Where the peer has an RNRPolicy, a Send is confirmed when it has found its receive. A peer that has closed its
	// half confirms nothing more: what it was asked to confirm and has not is flushed, as nobody knows what became of
	// it, and all after it. Where there is no such request, what is sent after that completes as without Confirm. The
	// connection ends in order all the same.
	Confirm bool
	// CheckLate has the memory that a request names checked when the request is carried out, and not when it is
	// posted: that an MR is named, that it is registered, of this Protection Domain, long enough, and has LocalWrite
	// where that is needed. As with RDMA hardware, a request with something wrong then fails with
	// StatusLocalProtection or StatusLocalAccess, and the connection ends. Without CheckLate such a request is
	// refused when it is posted. Receives of an SRQ are judged when they are posted.
	CheckLate bool
	// Deny is what the peer may not do on this QP, whatever memory was registered with: RemoteWrite, RemoteRead,
	// RemoteAtomic, or several of them. If the peer tries it, the connection ends by a Terminate: 0x1102 for a Write,
	// 0x1201 for the others. Empty messages reach no memory, and so are allowed.
	Deny Access
	// FPDUs says how FPDUs are placed in the segments of TCP. If zero, aligned with them, with
	// the exceptions that FPDUsDefault has.
	FPDUs FPDUs
	// Stream says what to ask for in markers and in the version of DDP and RDMAP.
	// CreateQP returns ErrVersion or ErrMarkersRequired for what the RNIC cannot do.
	// It takes effect when the QP is connected; until then QP.ModifyStream can change
	// it.
	Stream StreamAttr
	// Context is the program's own: QP.Context returns it, and nothing else looks at it.
	Context any
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
	c.Linger = orDefault(c.Linger, 100*time.Millisecond)
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
	case c.RNR.Bytes < 0 || c.RNR.Messages < 0:
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

// An RNRPolicy bounds what a QP keeps while it is not ready to receive (RNR): Sends and Immediate Data that have come
// and find no receive, and what the peer has asked for after them. They wait until receives are posted; Writes, Reads
// and Atomic Operations after them wait with them, so that everything is carried out in the order in which the peer has
// sent it (RFC 5041, sections 5.3 and 5.4; RFC 5040, section 5.5, rule 12). Only answers to requests of this side
// overtake them, as they do on RoCE: a Read completes before the receives are posted. That departs from section 5.3 of
// RFC 5041, "MUST Deliver DDP Messages to the ULP in the order they were sent". A Terminate overtakes them, too.
//
// When the peer closes its half, the program learns of it when all that waits has been received; receives can be posted
// until then. What waits is never dropped in silence, as it is complete for the peer: QP.Close and Shutdown, while
// something waits, end the connection as without an RNRPolicy, by a TerminateError 0x1202 at both ends.
//
// When that much waits, nothing more is received, and the lower layer holds the peer back, until receives are posted.
// Then responses and the peer's close wait too: two programs that both wait for one of these may wait for ever, so make
// the bound larger than what the peer has under way. QPConfig.IdleTimeout bounds how long a QP waits for receives, as
// for anything else; without it a peer waits as long as the consumer takes, as it does on RoCE with an RNR retry count
// of 7. A reset is noticed meanwhile on Linux, also below TLS, and over SCTP and a Stack whose connections tell
// (PeerAcked); elsewhere when receiving goes on. Over SCTP, a session that is held back while it keeps others of its
// association waiting is given up after 5 s (docs/endings.md).
//
// The bound is exceeded by what was received in one piece, up to 256 KiB over TCP. All of it counts in
// Limits.HeldBytes, and none of it in RNICAttr.MaxHeld.
//
// By default, and as the RFCs have it, a Send without a receive ends the connection (RFC 5041, section 7.1). A Send
// does so in any case if the QP holds its share of a Shared Receive Queue already (SRQConfig.PerQP).
type RNRPolicy struct {
	// Bytes bounds the bytes that wait, counting for each segment its header and 200 more. If zero, and Messages is
	// not, 1 MiB.
	Bytes int
	// Messages bounds the messages, Writes among them. If zero, and Bytes is not, 1024.
	Messages int
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
	// FPDUsDefault is FPDUsAligned, with two exceptions. On loopback it is FPDUsUnaligned: there no network cuts
	// anything, and segments are as large as the largest FPDUs. The same holds while the EMSS is not a multiple of
	// four, as the length of each FPDU is: then no FPDU fills a segment, and TCP would send each as a packet of its
	// own, at a fraction of the usual rate. Dialer.Dial sees to it that the EMSS is a multiple of four, in both
	// directions, unless the MTU of a router on the path prevents that.
	FPDUsDefault = FPDUs(driver.FPDUsDefault)
	// FPDUsAligned has each TCP segment begin with an FPDU and hold whole ones: Header
	// Alignment, which lets an RNIC place each segment by itself, whatever became of those
	// before it (RFC 5044, section 5.1 and Appendix A). It takes Linux and a TCP socket of
	// ours, not one under TLS; where that is missing, it is FPDUsUnaligned. It is also lost
	// where TCP sends less than it could to fill the peer's window, and when the path
	// MTU shrinks, for what TCP has in its buffer then. A Stack that is aware of MPA aligns
	// everywhere, and always.
	FPDUsAligned = FPDUs(driver.FPDUsAligned)
	// FPDUsUnaligned has FPDUs that fit into a TCP segment and follow each other wherever
	// TCP cuts them. With many small messages TCP can send fewer segments.
	FPDUsUnaligned = FPDUs(driver.FPDUsUnaligned)
	// FPDUsLarge has FPDUs of up to 64 KiB, whatever the size of TCP's segments: less
	// work for two ends in software. An RNIC at the other end has to hold what it
	// receives of an FPDU until that is whole.
	FPDUsLarge = FPDUs(driver.FPDUsLarge)
)

// mayAlign reports whether the FPDUs of a connection that is not there yet may come to be
// aligned.
func (f FPDUs) mayAlign() bool { return f == FPDUsDefault || f == FPDUsAligned }

func isLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}
