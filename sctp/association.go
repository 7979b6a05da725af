package sctp

import (
	"cmp"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// Config is what an Association is made with. All of it but Streams may be zero.
type Config struct {
	// Active tells that we have opened the SCTP association. One end chooses even streams and the other odd ones,
	// so that they do not ask for sessions on the same.
	Active bool
	// Streams is how many streams there are in both directions, 1 to 65536.
	Streams int
	// MaxMessage is the largest message, in bytes, that the carrier takes without fragmenting it.
	MaxMessage int
	// Listening has the peer's requests passed on. Without it each is answered with a Terminate.
	Listening bool
	// RTR is what we take as Ready-to-Receive indication. If zero, all kinds.
	RTR mpa.RTR

	// MaxSessions bounds the sessions at a time. If zero, 256.
	MaxSessions int
	// MaxPending bounds the peer's requests that wait for an answer. If zero, 16.
	MaxPending int
	// MaxEarly bounds, in bytes, the segments that have overtaken an Accept, with EarlyCost for each. If zero, 256
	// KiB.
	MaxEarly int
	// MaxQueued bounds the messages of a session that Output has not returned yet. If zero, 64.
	MaxQueued int

	// AnswerTimeout bounds the wait for the answer to an Initiate. If zero, [mpa.DefaultReplyTimeout].
	AnswerTimeout time.Duration
	// CloseTimeout bounds each step of an end. If zero, 5 s.
	CloseTimeout time.Duration
	// UnusedTimeout ends an association that has no session for that long. If zero, 30 s; if negative, it does not end
	// while it is listening.
	UnusedTimeout time.Duration
}

func (c *Config) fill() {
	c.Streams = min(max(c.Streams, 1), 1<<16)
	c.MaxSessions = cmp.Or(c.MaxSessions, 256)
	c.MaxPending = cmp.Or(c.MaxPending, 16)
	c.MaxEarly = cmp.Or(c.MaxEarly, 256<<10)
	c.MaxQueued = cmp.Or(c.MaxQueued, 64)
	c.RTR = cmp.Or(c.RTR, mpa.RTRSend|mpa.RTRWrite|mpa.RTRRead)
	c.AnswerTimeout = cmp.Or(c.AnswerTimeout, mpa.DefaultReplyTimeout)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, 5*time.Second)
	c.UnusedTimeout = cmp.Or(c.UnusedTimeout, defaultUnusedTimeout)
}

const defaultUnusedTimeout = 30 * time.Second

// An Association is the DDP side of one SCTP association. The halves of a session end apart: ours stays open when the
// peer has terminated its own, until Close, and the peer's when we have terminated ours, until Abort, for as long as
// it takes. It is not safe for concurrent use.
type Association struct {
	cfg     Config
	streams map[uint16]*stream // those that were ever used
	live    int                // streams with a session
	busy    int                // sessions that are not draining
	pending int                // those of them that wait for Accept
	early   int                // bytes held
	strays  int                // messages where there is no session
	unused  time.Time          // since when there is none; zero: there is one
	turns   []*stream          // those that have messages to be sent, in the order in which they get their turns
	events  []Event
	room    [8]Event
	end     End
	stats   Stats
}

// A stream is a pair of SCTP streams with the same identifier.
type stream struct {
	id uint16
	// Over all sessions, sent counts the messages that were given a number, given those of them that Output has
	// returned, and acked those that the peer is known to have.
	sent, given, acked uint64
	unsent             int       // DDP Segments that were sent and not given
	out                []Message // those that Output has not returned
	dead               bool      // unusable until the association ends
	late               bool      // a Terminate may come that has crossed our answer to the peer's request
	session            *session
}

// Stats are what an Association counts.
type Stats struct {
	Ordered uint64 // messages with the U flag 0, which RFC 5043, section 10, does not allow; they are taken like others
	Dropped uint64 // messages for which there was no session
}

// New returns the DDP side of an association that is up, with DDP's Adaptation Layer Indication on both sides.
func New(now time.Time, c Config) *Association {
	c.fill()
	a := &Association{cfg: c, streams: make(map[uint16]*stream), unused: now}
	a.events = a.room[:0]
	return a
}

// StopListening has each request of the peer that comes from now on answered with a Terminate. Those that were passed
// on are still the consumer's to answer. An association without a session is then of no use, and ends after
// UnusedTimeout, or after the default if that is negative.
func (a *Association) StopListening() {
	a.cfg.Listening = false
	if a.cfg.UnusedTimeout < 0 {
		a.cfg.UnusedTimeout = defaultUnusedTimeout
	}
}

// Stats returns the counters.
func (a *Association) Stats() Stats { return a.stats }

// Sessions returns how many streams have a session.
func (a *Association) Sessions() int { return a.live }

// Early returns how many bytes the segments take that have overtaken an Accept: Config.MaxEarly bounds them, and what
// exceeds it ends its session. A consumer that can hold the peer back does so before.
func (a *Association) Early() int { return a.early }

// MULPDU returns the largest DDP Segment that Send takes, in bytes.
func (a *Association) MULPDU() int { return MULPDU(a.cfg.MaxMessage) }

// Output returns the next message to be sent: unordered, and reliably. Messages of one stream must be submitted in
// that order; streams take turns, so that a session waits for one message of each other, however much they have. The
// Data is the caller's.
func (a *Association) Output() (m Message, ok bool) {
	if len(a.turns) == 0 {
		return Message{}, false
	}
	st := a.turns[0]
	a.turns = slices.Delete(a.turns, 0, 1)
	m, st.out[0] = st.out[0], Message{}
	if st.out = st.out[1:]; len(st.out) == 0 {
		st.out = nil
	} else {
		a.turns = append(a.turns, st)
	}
	st.given++
	if m.PPID == PPIDSegment {
		st.unsent--
	}
	return m, true
}

// Acked says that the peer has the first n messages that Output has returned for a stream.
func (a *Association) Acked(now time.Time, id uint16, n uint64) {
	st := a.streams[id]
	if st == nil {
		return
	}
	st.acked = max(st.acked, min(n, st.given))
	if s := st.session; s != nil {
		a.handleAcked(now, s)
	}
}

// How an association is to be ended.
type How uint8

// The ends. After any of them the Association does nothing more.
const (
	NotYet   How = iota // go on
	Shutdown            // in order, by SHUTDOWN
	Abort               // by ABORT
)

// An End says that the association is to be ended, and why.
type End struct {
	How   How
	Cause error
}

// End returns whether the association is to be ended.
func (a *Association) End() End { return a.end }

// abort ends the association with all its sessions.
func (a *Association) abort(cause error) { a.finishAll(End{Abort, cause}) }

// Lost says that the association has ended: by the peer, by SCTP, or here. Every session ends with cause.
//
// RFC 5043, section 11.3: "The local interface SHOULD notify all consumers of DDP streams when the underlying SCTP
// stream has been terminated."
func (a *Association) Lost(cause error) { a.finishAll(End{Abort, cause}) } // [C13]

func (a *Association) finishAll(e End) {
	if a.end.How != NotYet {
		return
	}
	a.end = e
	for id := range a.cfg.Streams {
		if st := a.streams[uint16(id)]; st != nil && st.session != nil {
			a.endSession(time.Time{}, st.session, e.Cause)
		}
	}
	for _, st := range a.turns {
		st.out = nil
	}
	a.turns, a.unused = nil, time.Time{}
}
