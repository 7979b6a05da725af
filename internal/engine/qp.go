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
	SendDepth int // entries of the Send Queue
	RecvDepth int // entries of the Receive Queue; unused with a Source
	MaxInline int // octets

	// Source is the Shared Receive Queue, or nil for the QP's own queue.
	Source ReceiveSource
	// Memory is what the peer, and the QP's own requests, may reach.
	Memory memory.Domain

	// CloseTimeout bounds the states Terminate and Closing.
	CloseTimeout time.Duration
	// Nudge is how long after the first FPDU an Initiator that has heard nothing
	// sends a zero-length RDMA Write; see nudge.go. Zero or less: never.
	Nudge time.Duration
	// StrictRTR refuses a peer whose first FPDU is not the RTR agreed on, and
	// one that sends before it may.
	StrictRTR bool
	// HalfClose leaves our half open when the peer closes its own, until the
	// consumer closes it. Otherwise it is closed when what is queued is finished.
	HalfClose bool
	// Trace is called for every FPDU, if it is set.
	Trace func(Trace)
}

// Params is what the startup phase agreed on and the socket reports.
type Params struct {
	mpa.Negotiated
	MULPDU int // octets
	// ORD and IRD are in force: with 0x3FFF negotiated, the consumer's own.
	ORD, IRD int
}

// A QP is the protocol side of a Queue Pair.
type QP struct {
	cfg   Config
	state State
	cause error // why the connection ended, nil after an orderly close

	sq   sendQueue
	rq   recvQueue
	recv ReceiveSource

	done    []Completion
	notices []Notice
	stats   Stats

	stream
}

// stream is all that begins anew with each connection.
type stream struct {
	Params

	tx    mpa.Writer
	rx    mpa.Reader
	heard bool // at least one FPDU was received and validated

	// Receiving.
	queues   [3]ddp.UntaggedQueue // by QN: Send, Read Request, Terminate
	current  RecvWork             // the receive that the Send under way fills
	taken    bool                 // current is in use
	capacity uint64               // its octets
	irrq     rdmap.IRRQ
	response ddp.Segmenter // of the Read Response under way
	partial  [2]bool       // a Send, or a Write, of the peer's is under way

	// Sending.
	orq      rdmap.ORQ
	sendMSN  uint32 // of the next Send
	readMSN  uint32 // of the next Read Request
	rtr      mpa.RTR
	nudges   int       // zero-length Writes asked for
	busy     source    // whose message is under way
	turn     source    // who goes first at the next message
	inFlight bool      // octets given by Output are not all sent
	sent     uint64    // stream offset that the LLP has taken
	nudgeAt  time.Time // zero: not
	nudged   int       // how often

	// Ending.
	term       *rdmap.Terminate // to be sent
	termSent   bool
	draining   bool // an orderly close was asked for
	halving    bool // of our half only
	peerClosed bool // FIN received
	finished   bool // the driver was told to send FIN
	closeBy    time.Time
	llp        LLP

	scratch   [rdmap.TerminateMaxLen]byte // an RDMAP header being built
	ddpHeader [ddp.UntaggedHeaderLen]byte
	onePiece  [1][]byte
}

// New returns a QP in state Idle.
func New(cfg Config) *QP {
	q := &QP{cfg: cfg}
	q.sq.slots = make([]sendEntry, cfg.SendDepth)
	if q.recv = cfg.Source; q.recv == nil {
		q.rq.slots = make([]RecvWork, cfg.RecvDepth)
		q.recv = &q.rq
	}
	return q
}

// State returns the QP's state.
func (q *QP) State() State { return q.state }

// Cause says why the connection ended: nil while it has not, and after an
// orderly close.
func (q *QP) Cause() error { return q.cause }

// Negotiated returns what the connection runs with.
func (q *QP) Negotiated() Params { return q.Params }

// Connect puts the QP into RTS on a connection whose startup phase is over.
// All state of RDMAP, DDP and MPA begins anew.
func (q *QP) Connect(p Params) error {
	if !Legal(q.state, RTS) || q.state == RTS {
		return fmt.Errorf("connect in state %v: %w", q.state, ErrBadState)
	}
	// CARRIER, Section 5.1: "no mixing of versions is allowed." [N02]
	if p.DDPVersion != p.RDMAPVersion || p.DDPVersion > 1 {
		return fmt.Errorf("%w: DDP version %d with RDMAP version %d", ErrVersions, p.DDPVersion, p.RDMAPVersion)
	}
	q.stream = stream{
		Params:  p,
		tx:      mpa.NewWriter(p.MarkersSend, p.CRC),
		rx:      mpa.NewReader(p.MarkersReceive, p.CRC),
		orq:     rdmap.NewORQ(max(p.ORD, 1)),
		irrq:    rdmap.NewIRRQ(p.IRD),
		sendMSN: ddp.FirstMSN,
		readMSN: ddp.FirstMSN,
	}
	for qn := range q.queues {
		q.queues[qn] = ddp.NewUntaggedQueue(uint32(qn))
	}
	q.cause = nil
	q.setState(RTS)
	q.begin()
	return nil
}

// begin queues what the Initiator of a peer-to-peer connection owes its peer
// before anything else: a Ready-to-Receive indication, or the Terminate that
// says why the connection cannot be (RFC 6581, sections 9.1 and 9.2).
func (q *QP) begin() {
	if q.TerminateCode != 0 {
		q.fail(&Failure{Code: mpaCode(q.TerminateCode), Reason: "the startup frames do not allow the connection"}, nil)
		return
	}
	if q.Role == mpa.RoleInitiator && q.PeerToPeer {
		q.rtr = q.RTR
	}
}

func (q *QP) setState(s State) {
	if q.state == s {
		return
	}
	q.notice(Notice{Kind: NoticeState, From: q.state, To: s})
	q.state = s
}

// mayTransmit reports whether FPDUs may be sent at all: not yet, while a
// Responder has heard nothing, and no more behind a FIN.
//
// RFC 5044, section 7.1.2: "MPA Responder mode implementations MUST receive and
// validate at least one FPDU before sending any FPDUs or Markers." [Q11]
func (q *QP) mayTransmit() bool {
	return (q.SendFirst || q.heard) && !q.finished
}
