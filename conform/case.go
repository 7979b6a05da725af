package conform

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/conform/peer"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A Case is one dialogue with the peer under test, and what the peer must do in it. [Cases] returns those of the suite.
// A program makes its own with an ID, a Text and a Play, and runs them by [Options.Cases].
type Case struct {
	// ID is "group/name", in lower case. It is unique, and stays what it is.
	ID string
	// Requirements are the project's IDs of what is tested, such as "Q13".
	Requirements []string
	// Section is where the document says so, such as "RFC 5044 7.1.2".
	Section string
	// Role is that of the peer under test: where it is the Responder we connect,
	// where it is the Initiator we listen. In a case of one's own, zero is the role that the Options have.
	Role mpa.Role
	// Dialects are those that the case can be run in. If empty, all.
	Dialects []mpa.Dialect
	// App is what the peer's application must be.
	App App
	// Delayed: the case is about what precedes a delayed startup, and needs
	// Options.Streaming.
	Delayed bool
	// Slow: the case waits for the peer's own timeouts.
	Slow bool
	// Unsafe says how the case may harm a peer that is not up to it, beyond the
	// connection; empty if it cannot.
	Unsafe string
	// sctp: the case is about DDP over SCTP, and needs Options.SCTP or Options.SCTPListener.
	sctp bool
	// Text is one sentence: what we do and what the peer must do.
	Text string
	// Play is the dialogue of a case of one's own, over TCP. The connection is there, with Options.Timeout for its
	// waits; Run closes it in the end, and also when the context ends.
	// The case passes if both the error that Play returns and that of the Conn are nil. A [peer.Error] says what was
	// expected and what came; any other error fails the case, too, but for those of [Verdict.Because].
	Play func(context.Context, *peer.Conn) error
	// run is the dialogue. It returns if the peer passes, and leaves by one of the
	// session's verdicts otherwise.
	run func(*session)
}

// OverSCTP reports whether the case is for a peer over SCTP. The others are for peers over TCP.
func (c *Case) OverSCTP() bool { return c.sctp }

// speaks reports whether the case can be run in a dialect.
func (c *Case) speaks(d mpa.Dialect) bool {
	return len(c.Dialects) == 0 || slices.Contains(c.Dialects, d)
}

// App is the application on the peer's side, which carries a dialogue beyond the
// startup.
type App uint8

// The applications.
const (
	// AppNone is any, or none that we know: startup only.
	AppNone App = iota
	// AppRping is rdma-core's rping, or the command iwarp rping: rping -s where
	// the peer is the Responder, rping -c where it is the Initiator.
	AppRping
	// AppReject is an application that rejects every Request with R=1, and says
	// nothing in streaming mode after that: iwarp rping -s -P --reject is one.
	AppReject
)

var appNames = [...]string{"none", "rping", "reject"}

// String returns "none", "rping" or "reject".
func (a App) String() string { return wording.Name(a, "app", appNames[:]) }

// MarshalText returns what String does.
func (a App) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText takes what String returns.
func (a *App) UnmarshalText(b []byte) error {
	i := slices.Index(appNames[:], strings.ToLower(string(b)))
	if i < 0 {
		return fmt.Errorf("conform: no application %q: one of %s", b, strings.Join(appNames[:], ", "))
	}
	*a = App(i)
	return nil
}

// Verdict is how a case ended.
type Verdict uint8

// The verdicts.
const (
	Pass          Verdict = iota + 1
	Fail                  // the peer breaks the rule
	NotApplicable         // the case does not fit the peer, or it does not follow a SHOULD, or was not selected
	Inconclusive          // the dialogue did not get as far as the rule
	NotAsked              // the peer had stopped answering
)

var verdictNames = [...]string{"none", "pass", "fail", "not applicable", "inconclusive", "not asked"}

// String returns, for instance, "not applicable".
func (v Verdict) String() string { return wording.Name(v, "verdict", verdictNames[:]) }

// MarshalText returns what String does.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Because returns an error by which a Play ends its case with this verdict, which is NotApplicable or Inconclusive.
// Because of any other verdict, the case fails.
func (v Verdict) Because(why string) error { return &unjudged{v, why} }

// unjudged is the error of a case that neither passes nor fails.
type unjudged struct {
	verdict Verdict
	why     string
}

func (u *unjudged) Error() string { return u.verdict.String() + ": " + u.why }

// operation reports whether the case is about what follows the startup.
func (c *Case) operation() bool {
	group, _, _ := strings.Cut(c.ID, "/")
	switch group {
	case "fpdu", "ddp", "rdmap", "terminate":
		return true
	}
	return false
}

// Cases returns all cases of the suite, in the order in which they are run.
func Cases() []Case {
	return slices.Concat(
		requestFraming(), requestKeys(), requestRevisions(), requestFlags(), requestPrivateData(), requestEnds(),
		requestDepths(), requestModels(), requestReady(), requestData(),
		rejections(), delayedRequests(),
		rtrRequests(), revision0Requests(), startKeyRequests(),
		replyFraming(), replyKeys(), replyRevisions(), replyFlags(), replyPrivateData(), replyRejects(), replyEnds(),
		replyDepths(), replyModels(), replyData(),
		delayedReplies(),
		rtrReplies(), revision0Replies(), startKeyReplies(),
		operationCases(), sctpCases(), sctpActive(),
	)
}
