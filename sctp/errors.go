package sctp

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

// Errors of a call that was not carried out and has changed nothing.
var (
	// ErrState: there is no such session, or its state does not allow the call.
	ErrState = errors.New("sctp: not in this state of the session")
	// ErrFull: as many messages as may be are on their way: see Association.Room.
	ErrFull = errors.New("sctp: too many messages under way")
	// ErrLimit: the association has as many sessions as it may, or no stream is free.
	ErrLimit = errors.New("sctp: no stream is free for one more session")
	// ErrSize: the segment is larger than the MULPDU.
	ErrSize = errors.New("sctp: a DDP Segment larger than the MULPDU")
)

// Errors that end a session.
var (
	// ErrTimeout: the peer did not play its part in time.
	ErrTimeout = errors.New("sctp: timed out")
	// ErrEarly: more segments have overtaken an Accept than are held, which breaks no rule.
	ErrEarly = errors.New("sctp: too much has come before the Accept that it overtook")
	// ErrCanceled: the peer has taken its Initiate back.
	ErrCanceled = errors.New("sctp: the peer has taken back its request for a session")
	// ErrReset: the consumer has given up the association's only session, and the association with it.
	ErrReset = errors.New("sctp: the session was given up before its end")
	// ErrUnused: there was no session in the association for too long.
	ErrUnused = errors.New("sctp: an association without a session")
)

// A Rule is what a peer has broken.
type Rule uint8

// The rules, by what breaks them.
const (
	RuleIndication    Rule = iota + 1 // another Adaptation Layer Indication than DDP's, or none
	RulePPID                          // a PPID that is neither 16 nor 17
	RuleShort                         // a message without room for its header
	RuleFunction                      // an unknown Function Code
	RuleTerminateData                 // private data in a Terminate
	RulePrivateData                   // too much private data
	RuleEnhancedData                  // no room for the enhanced data
	RuleSSN                           // a DDP-SSN that was used already, or cannot be yet
	RuleSequence                      // a message in none of the legal sequences
	RuleKind                          // an answer of another kind than the Initiate
	RuleStray                         // messages where there is no session, again and again
	RuleFragmented                    // a message in several chunks
)

var rules = [...]struct{ section, text string }{
	RuleIndication:    {"RFC 5043, section 11.1", "no Adaptation Layer Indication of DDP"},
	RulePPID:          {"RFC 5043, section 5.1", "a message that is neither a DDP Segment nor session control"},
	RuleShort:         {"RFC 5043, section 5.2", "a message that is too short"},
	RuleFunction:      {"RFC 5043, section 5.2.3", "an unknown Function Code"},
	RuleTerminateData: {"RFC 5043, section 5.2.3", "a Terminate with private data"},
	RulePrivateData:   {"RFC 5043, section 5.2.3", "more than 512 bytes of private data"},
	RuleEnhancedData:  {"RFC 6581, section 7", "a message without its enhanced data"},
	RuleSSN:           {"RFC 5043, section 10", "an invalid DDP-SSN"},
	RuleSequence:      {"RFC 5043, section 6.1", "a message in none of the legal sequences"},
	RuleKind:          {"RFC 6581, section 10", "an answer of another kind than the Initiate"},
	RuleStray:         {"RFC 5043, section 6.1", "messages outside of any session"},
	RuleFragmented:    {"RFC 5043, section 9", "a message in fragments"},
}

// Section names the document and the section that has the rule.
func (r Rule) Section() string {
	if int(r) < len(rules) {
		return rules[r].section
	}
	return ""
}

// String says what has happened, without particulars.
func (r Rule) String() string {
	if r > 0 && int(r) < len(rules) {
		return rules[r].text
	}
	return fmt.Sprintf("rule %d", uint8(r))
}

// A Violation is a peer's breach of a rule.
type Violation struct {
	Rule   Rule
	Stream uint16 // of RuleIndication and RuleStray, which are about the association, 0
	Reason string // particulars
}

// Error names the stream, if the rule is about one, the rule, the particulars and the section.
func (v *Violation) Error() string {
	s := "sctp: "
	if v.Rule != RuleIndication && v.Rule != RuleStray {
		s += fmt.Sprintf("stream %d: ", v.Stream)
	}
	if s += v.Rule.String(); v.Reason != "" {
		s += ": " + v.Reason
	}
	return s + " (" + v.Rule.Section() + ")"
}

func violation(r Rule, format string, args ...any) *Violation {
	return &Violation{Rule: r, Reason: fmt.Sprintf(format, args...)}
}

// A Refusal is the answer of a peer that does not want the session.
type Refusal struct {
	// Provider tells that the answer was a Terminate: too many requests wait at the peer, nobody listens there, or
	// it does not know RFC 6581. Otherwise its consumer has rejected the session.
	Provider bool
	// Dialect is that of a rejection, as in mpa.Negotiated. Zero: it is the provider's.
	Dialect mpa.Dialect
	// PrivateData comes from the peer's consumer.
	PrivateData []byte
	// Enhanced tells that the answer has IRD, ORD and RTR: not every Enhanced Reject has. The peer may give in PeerORD
	// the depth that it needs our IRD to have.
	Enhanced         bool
	PeerIRD, PeerORD mpa.Depth
	RTR              mpa.RTR
	// Fallback advises to ask again without what RFC 6581 adds, if the consumer agrees: an enhanced Initiate was
	// answered by a Terminate.
	Fallback bool
}

// Error says who refused.
func (r *Refusal) Error() string {
	if r.Provider {
		return "sctp: the peer's provider refused the session"
	}
	s := fmt.Sprintf("sctp: the peer rejected the session (private data of length %d", len(r.PrivateData))
	if r.Enhanced {
		s += fmt.Sprintf(", IRD %v, ORD %v", r.PeerIRD, r.PeerORD)
	}
	return s + ")"
}
