package engine

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Config is what a QP is created with.
type Config struct {
	// Memory is what the peer, and the QP's own requests, may reach.
	Memory memory.Domain
	// Trace is called for every FPDU, if it is set.
	Trace func(Trace)
	// RNR bounds what waits for receives that are posted later; see rnr.go.
	RNR RNR
	// SendTimeout, with a Source, bounds how long a Send of the peer's may hold a receive
	// before it is complete: see watchSend. Zero: there is no bound.
	SendTimeout time.Duration
	// GapTimeout, with LayerMessages, bounds the wait for a segment that others came ahead of. Zero or less: there is
	// no bound.
	GapTimeout time.Duration
	// Discard has a close go on, and forget the messages that find no receive from then on.
	Discard bool
	// Confirm has Sends and Writes complete when the peer has carried them out; see confirm.go.
	Confirm bool
	// Prefixed has Sends begin with a prefix; see prefix.go.
	Prefixed bool
	// StrictRTR refuses a peer whose first FPDU is not the RTR agreed on, and
	// one that sends before it may.
	StrictRTR bool
	// HalfClose leaves our half open when the peer closes its own, until the
	// consumer closes it, whatever Linger is.
	HalfClose bool

	SendDepth int // entries of the Send Queue
	RecvDepth int // entries of the Receive Queue; unused with a Source

	// Source is the Shared Receive Queue, or nil for the QP's own queue.
	Source ReceiveSource

	// CloseTimeout bounds the states Terminate and Closing, and a graceful close that
	// makes no progress.
	CloseTimeout time.Duration
	// CloseLimit bounds a graceful close as a whole; zero or less: not.
	CloseLimit time.Duration
	// Linger is how long our half stays open with nothing to send when the peer has
	// closed its own, for work that may still be posted. Zero or less: not at all.
	Linger time.Duration
	// Unwatched, if it is set, is asked at the peer's FIN whether no event tells the program of it. Then a program that
	// has nothing to answer is not waited for: see lingers.
	Unwatched func() bool
}

// Params is what the startup phase agreed on and the socket reports.
type Params struct {
	mpa.Negotiated
	Layer Layer
	// TellsEnd has the LLP tell how our half has ended after the peer's, by FINAcked or Failed. Until then
	// the state is Closing.
	TellsEnd bool
	// Opener is an RTR indication to be sent first by an Initiator although none was
	// negotiated, so that the Responder may send.
	Opener mpa.RTR
	MULPDU int // bytes
	// EMSS, in bytes, is that of TCP where FPDUs are to be aligned with its segments;
	// zero: they are not. MULPDU is then that of the EMSS. Record is how many bytes a
	// record may have, which is one slice of what Output returns.
	EMSS, Record int
	// ORD and IRD are in force: with 0x3FFF negotiated, the consumer's own.
	ORD, IRD int
	// SendFrom is when a Responder begins to send although it has heard nothing; zero:
	// never.
	SendFrom time.Time
	Ahead    Ahead
	// Waiting, if it is set, is what several connections have together for what waits for receives, each segment with
	// AheadCost.
	Waiting Budget
	First   uint64 // number at which the peer's first segment begins; unused with LayerStream
	// RTT is how long the path takes there and back, as far as it is known.
	RTT time.Duration
	// Nudge is how long after the first FPDU an Initiator that has heard nothing
	// sends a zero-length RDMA Write; see nudge.go. Zero or less: never. Without it, Silence
	// is after how long it says that it has heard nothing, by NoticeSilent; zero: never.
	Nudge, Silence time.Duration
}

// A Machine is the protocols of one connection of a Queue Pair. Before Connect it takes what is posted for that.
//
// In it, and in what it consists of, the fields that each message meets come first: where there are many connections,
// each of their cache lines has to come from memory.
type Machine struct {
	sq   sendQueue
	rq   recvQueue
	recv ReceiveSource

	done    batch[Completion]
	notices batch[Notice]

	cause error // what ended the connection, nil if nothing was wrong
	// orderly says which side has closed in order, or was the first to.
	orderly      error
	doneReceives uint32 // of done
	state        State
	lingered     bool // our half has ended by itself
	prefixed     bool // Sends have a prefix

	stream
	stats Stats
	cfg   Config
	few   [1]Notice // where notices begin: as many as there mostly are at once
}

// stream is all that begins anew with each connection.
type stream struct {
	// Receiving.
	heard   bool    // at least one FPDU was received and validated
	taken   bool    // current is in use
	tookOne bool    // since the last Trim
	partial [2]bool // a Send, or a Write, of the peer's is under way
	inFPDU  bool    // Input has left a part of an FPDU
	inPlace bool    // the payload of the segment in hand was placed ahead of its turn
	// Sending.
	rtr      mpa.RTR
	busy     source // whose message is under way
	turn     source // who goes first at the next message
	inFlight bool   // bytes given by Output are not all sent
	// Ending.
	termSent   bool
	halving    bool // BeginHalfClose was called
	discarding bool // messages that find no receive are forgotten
	carriedOut bool // a request was, since workedAt was set
	writtenTo  bool // the peer has written to our memory since the last post
	strict     bool // Modify to Closing waits for a Ready-to-Receive indication
	peerClosed bool // FIN received
	finished   bool // the driver was told to send FIN
	llp        LLP

	tx   mpa.Writer
	rx   mpa.Reader
	term *rdmap.Terminate // to be sent
	sent uint64           // stream offset that the LLP has taken

	inputAt  time.Time // when what came last did
	readAt   time.Time // when the last Read Request came
	workedAt time.Time // when the last request of ours was carried out; zero: none was
	times
	Params

	sendMSN    uint32 // of the next Send
	readMSN    uint32 // of the next Read Request
	nudges     int    // zero-length Writes asked for
	confirm    confirm
	orq        rdmap.ORQ
	irrq       rdmap.IRRQ
	response   ddp.Segmenter        // of the Read Response under way
	sequel     ddp.Sequel           // of the Write or Read Response under way
	placing    memory.Run           // where it goes; has ended except within Input
	unanswered int                  // completions of receives, less the messages that were posted since; not negative
	current    *RecvWork            // the receive that the Send under way fills; nil: none was taken since the last Trim
	capacity   uint64               // its bytes
	written    uint64               // bytes of the peer's last Write
	rnr        rnrQueue             // what has found no receive
	shown      *shown               // by an MPA-aware TCP
	ahead      *ahead               // what has come ahead of its turn
	drain      *drain               // of a graceful close
	queues     [4]ddp.UntaggedQueue // by QN: Send, Read Request, Terminate, Atomic Response

	sendFrom time.Time // when the Send under way began
	sendOf   uint32    // its MSN
	nudged   uint8     // how often
	excused  uint8     // empty Writes of the peer that are not odd
	// How many Atomic Operations we have asked for, and answered.
	atomicsAsked, atomicsDone uint32
	whole                     whole // what was built, where segments are not framed
	finAck                    finAckWait
	rxHeader                  [ddp.UntaggedHeaderLen]byte // of the segment that is being received
}

// times are the deadlines of a connection, beside Params.SendFrom. Zero is never: mostly all of them are.
type times struct {
	sendBy   time.Time // when the Send under way is to be complete
	readyBy  time.Time // when a receive is to be posted for what waits
	nudgeAt  time.Time
	lingerBy time.Time // zero: our half is not open just for more work to come
	closeBy  time.Time
}

// New returns a QP in state Idle.
func New(cfg Config) *Machine {
	q := &Machine{cfg: cfg, prefixed: cfg.Prefixed}
	q.sq.SetLimit(cfg.SendDepth)
	if q.recv = cfg.Source; q.recv == nil {
		q.rq.SetLimit(cfg.RecvDepth)
		q.recv = &q.rq
	}
	return q
}

// State returns the QP's state.
func (q *Machine) State() State { return q.state }

// Cause says why the connection ended, or is about to: nil while nothing has
// happened, ErrClosedHere or ErrPeerClosed after an orderly close, or half of one.
func (q *Machine) Cause() error {
	if q.cause != nil {
		return q.cause
	}
	return q.orderly
}

// Heard reports whether the peer's first FPDU was received and validated.
func (q *Machine) Heard() bool { return q.heard }

// Negotiated returns what the connection runs with.
func (q *Machine) Negotiated() Params { return q.Params }

// SetRNR replaces Config.RNR, before the connection.
func (q *Machine) SetRNR(r RNR) { q.cfg.RNR = r }

// Deny says what the peer may not do, whatever memory was registered with: for what comes from now on.
func (q *Machine) Deny(a memory.Access) { q.cfg.Memory.Denied = a }

// Connect puts the QP into RTS on a connection whose startup phase is over.
// All state of RDMAP, DDP and MPA begins anew.
func (q *Machine) Connect(p *Params) error {
	if !Legal(q.state, RTS) || q.state == RTS {
		return fmt.Errorf("connect in state %v: %w", q.state, ErrBadState)
	}
	// CARRIER, section 5.1: "no mixing of versions is allowed." [N02]
	if p.DDPVersion != p.RDMAPVersion || p.DDPVersion > 1 {
		return fmt.Errorf("%w: %d and %d", ErrVersions, p.DDPVersion, p.RDMAPVersion)
	}
	q.stream = stream{} // in place: a whole one beside it would take a goroutine's stack to its next size
	q.Params = *p
	q.beginLayers()
	q.beginAhead()
	q.SetMULPDU(p.MULPDU, p.EMSS, p.Record)
	q.cause, q.orderly, q.lingered = nil, nil, false
	q.setState(RTS)
	q.queueOpening()
	return nil
}

// beginLayers has RDMAP, DDP and MPA begin. What they return is not on the stack of what follows.
func (q *Machine) beginLayers() {
	q.tx, q.rx = mpa.NewWriter(q.MarkersSend, q.CRC), mpa.NewReader(q.MarkersReceive, q.CRC)
	q.orq, q.irrq = rdmap.NewORQ(max(q.ORD, 1)), rdmap.NewIRRQ(q.IRD)
	q.sendMSN, q.readMSN = ddp.FirstMSN, ddp.FirstMSN
	for qn := range q.queues {
		q.queues[qn] = ddp.NewUntaggedQueue(uint32(qn))
	}
}

// queueOpening queues what the Initiator of a peer-to-peer connection owes its peer
// before anything else: a Ready-to-Receive indication, or the Terminate that
// says why the connection cannot be (RFC 6581, sections 9.1 and 9.2).
func (q *Machine) queueOpening() {
	if q.TerminateCode != 0 {
		q.fail(startupFailure(q.TerminateCode), nil)
		return
	}
	switch {
	case q.Role != mpa.RoleInitiator:
	case q.PeerToPeer:
		q.rtr = q.RTR
	default:
		q.rtr = q.Opener
	}
}

func (q *Machine) setState(s State) {
	if q.state == s {
		return
	}
	q.notice(Notice{Kind: NoticeState, From: q.state, To: s})
	q.state = s
	q.closeBy, q.lingerBy, q.nudgeAt = time.Time{}, time.Time{}, time.Time{} // of the one before
	q.drain.forgetTimes()
	if !q.listens() {
		q.ahead.forget()
		q.forgetShown()
	}
	if s != RTS {
		q.forgetRNR()
	}
}

// mayTransmit reports whether FPDUs may be sent at all: not yet, while a
// Responder has heard nothing, and no more after a FIN.
//
// RFC 5044, section 7.1.2: "MPA Responder mode implementations MUST receive and
// validate at least one FPDU before sending any FPDUs or Markers." [Q11]
func (q *Machine) mayTransmit() bool {
	return (q.SendFirst || q.heard) && !q.finished
}
