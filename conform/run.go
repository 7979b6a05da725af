package conform

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/mpa"
)

// A Result is how one case ended.
type Result struct {
	Case    Case
	Verdict Verdict
	// Why says why a case neither passed nor failed.
	Why string
	// Expected and Got describe a failure: what the peer had to do, and what it did.
	Expected, Got string
	Dialogue      []Entry
	Took          time.Duration
	absent        bool  // there was no connection with the peer
	missing       error // for this reason
	answered      bool  // when it ended, the peer had the last word
}

// A Summary counts the results of a run.
type Summary struct {
	Passed        int `json:"passed"`
	Failed        int `json:"failed"`
	NotApplicable int `json:"not_applicable"`
	Inconclusive  int `json:"inconclusive"`
	// Stopped is why the run is not complete; empty if it is.
	Stopped string `json:"stopped,omitempty"`
	// Interrupted: the context ended, and Stopped says so.
	Interrupted bool `json:"interrupted,omitempty"`
	// RoundTrip is the longest round trip that was measured, if that is longer than the quiet time: then
	// each case watched for both times together that the peer did nothing it must not do. Otherwise it is
	// zero. In JSON it is round_trip_ms.
	RoundTrip time.Duration `json:"-"`
	// NotMPA: the peer speaks another protocol, and no case was run.
	NotMPA bool `json:"not_mpa,omitempty"`
	// NotAsked counts the cases that were left when the peer had stopped answering, of which PeerStopped says that it
	// did. Stopped says after which case.
	NotAsked    int  `json:"not_asked,omitempty"`
	PeerStopped bool `json:"peer_stopped,omitempty"`
	// Away are the times at which the peer did not answer for a while, and then did.
	Away []Absence `json:"away,omitempty"`
	// Err is why the peer could not be connected, if that has stopped the run, be it at the first case or later.
	Err error `json:"-"`

	// Peer, Version and Time are for the program that runs the suite, and go into JSON: the address that was tested, the
	// program's version, and when the run began. Run leaves them empty.
	Peer    string    `json:"peer,omitempty"`
	Version string    `json:"version,omitempty"`
	Time    time.Time `json:"time,omitzero"`
}

// An Absence is a time for which the peer did not answer. The case at which that was noticed was run again, with those
// before it in which the peer had said nothing.
type Absence struct {
	Case string
	Took time.Duration
}

// MarshalJSON returns case and ms.
func (a Absence) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Case string  `json:"case"`
		Took float64 `json:"ms"`
	}{a.Case, report.Milliseconds(a.Took)})
}

// Add counts one result.
func (t *Summary) Add(v Verdict) {
	switch v {
	case Pass:
		t.Passed++
	case Fail:
		t.Failed++
	case NotApplicable:
		t.NotApplicable++
	case NotAsked:
		t.NotAsked++
	default:
		t.Inconclusive++
	}
}

// OK reports whether nothing failed and the run is complete. A run in which no case applied to the peer is not
// complete.
func (t *Summary) OK() bool { return t.Failed == 0 && t.Stopped == "" }

// patience is how many cases in a row may find nobody there, and how many times Options.Timeout a peer that has
// answered before is given to come back.
const patience = 3

// Run runs the selected cases one after the other and hands every result to report, which may be nil.
// It stops early when the context ends, or when the peer has stopped answering: then the cases that are left are
// NotAsked. It stops before the first case if the peer cannot be connected, speaks another protocol, or answers nothing
// at all or nothing whole. An error is about the options: it is a [*NoCasesError] if they select no case.
func Run(ctx context.Context, opts Options, report func(*Result)) (Summary, error) {
	var sum Summary
	o, err := opts.resolved()
	if err != nil {
		return sum, err
	}
	cases, err := o.Selected()
	if err != nil {
		return sum, err
	}
	found := o.probe(ctx)
	if found.absent != nil && ctx.Err() == nil {
		sum.Stopped, sum.Err = notConnected(found.absent), found.absent
		return sum, nil
	}
	if found.unanswered != "" && ctx.Err() == nil { // else nobody has waited for an answer
		sum.Stopped = found.unanswered
		return sum, nil
	}
	if found.foreign != "" {
		sum.NotMPA, sum.Stopped = true, "this is not MPA: the peer answers with "+found.foreign
		return sum, nil
	}
	var idle idleness
	p := &presence{opts: &o, known: found.heard, settled: func(r *Result) {
		idle.note(r)
		sum.Add(r.Verdict)
		if report != nil {
			report(r)
		}
	}}
	o.runAll(ctx, cases, found.unspoken, &sum, p)
	sum.Stopped = cmp.Or(sum.Stopped, idle.text())
	o.noteRoundTrip(&sum)
	return sum, nil
}

// An idleness is that of a run in which no case applies: nothing was tested, and nothing is known of the peer.
type idleness struct {
	tested bool
	whys   []string // why not, each once
}

// note keeps each reason once.
//
//housecheck:texts It prints them later.
func (i *idleness) note(r *Result) {
	i.tested = i.tested || r.Verdict != NotApplicable && r.Verdict != NotAsked
	if !slices.Contains(i.whys, r.Why) {
		i.whys = append(i.whys, r.Why)
	}
}

// text says so; empty if something was tested.
func (i *idleness) text() string {
	switch {
	case i.tested:
		return ""
	case len(i.whys) == 1:
		return "nothing was tested, as no case applies: " + i.whys[0]
	}
	return "nothing was tested, as no case applies"
}

// notConnected is why a run is not complete whose peer was never there.
func notConnected(err error) string { return "the peer cannot be connected: " + err.Error() }

// runAll runs cases until one is interrupted or the peer is gone, and notes why it
// stopped. No case applies to a peer that does not speak MPA as unspoken says.
func (o *Options) runAll(ctx context.Context, cases []Case, unspoken string, sum *Summary, p *presence) {
	absent, again := 0, -1 // again is the last place from which cases were run a second time
	for i := 0; i < len(cases); i++ {
		res := o.one(ctx, cases[i], unspoken)
		if ctx.Err() != nil {
			p.flush()
			sum.Stopped, sum.Interrupted = "interrupted", true
			return
		}
		doubt := p.addResult(i, &res)
		switch {
		case doubt || i == len(cases)-1 && len(p.doubtful) > 0:
			away, here := p.find(ctx)
			switch {
			case !here && ctx.Err() == nil:
				sum.stop(p, cases)
				return
			case away > 0 && p.first > again:
				sum.Away = append(sum.Away, Absence{res.Case.ID, away})
				again, i, p.doubtful = i, p.first-1, nil
				continue
			}
			p.flush()
		case res.absent:
			absent++
		case len(res.Dialogue) > 0:
			absent = 0
		}
		if absent == o.patience() {
			sum.Stopped, sum.Err = notConnected(res.missing), res.missing
			return
		}
	}
}

// one runs a case, unless it is held.
func (o *Options) one(ctx context.Context, c Case, unspoken string) Result {
	if why := o.held(&c); why != "" {
		return Result{Case: c, Verdict: NotApplicable, Why: why}
	}
	if unspoken != "" {
		return Result{Case: c, Verdict: NotApplicable, Why: unspoken}
	}
	return o.run(ctx, c)
}

// patience is how many cases in a row may find nobody there who was never there. An Initiator was waited for already.
func (o *Options) patience() int {
	if o.Role == mpa.RoleInitiator {
		return 1
	}
	return patience
}

// stop notes that the peer has stopped answering: what was in doubt and what is left was not asked.
func (t *Summary) stop(p *presence, cases []Case) {
	t.Stopped, t.PeerStopped, t.Err = p.stopped(), true, p.missing
	if t.Err != nil {
		t.Stopped += ": " + t.Err.Error()
	}
	p.doubtful = nil
	for _, c := range cases[p.first:] {
		p.settled(&Result{Case: c, Verdict: NotAsked, Why: "the peer had stopped answering"})
	}
}

// RunCase runs a case, whether or not the options select it. One that is not of [Cases] and has no Play is an error; so
// is one over a network on which the options have no peer.
func RunCase(ctx context.Context, opts Options, c Case) (Result, error) {
	o, err := opts.resolved()
	switch {
	case err != nil:
		return Result{}, err
	case c.dialogue() == nil:
		return Result{}, fmt.Errorf("conform: the case %q has no dialogue: set Play, or take one that Cases or Options.Selected returns", c.ID)
	case c.sctp && !o.overSCTP():
		return Result{}, fmt.Errorf("conform: the case %q is one over SCTP: %s", c.ID, noPeer)
	case !c.sctp && o.Peer == nil:
		return Result{}, fmt.Errorf("conform: the case %q is one over TCP: %s", c.ID, noPeer)
	}
	return o.run(ctx, c), nil
}

// run runs one case.
func (o *Options) run(ctx context.Context, c Case) (res Result) {
	c.Role = cmp.Or(c.Role, o.Role)
	s := &session{ctx: ctx, opts: o, c: &c, begun: time.Now()}
	res = Result{Case: c, Verdict: Pass}
	defer func() {
		switch end := recover().(type) {
		case nil:
		case outcome:
			res.Verdict, res.Why, res.Expected, res.Got = end.verdict, end.why, end.expected, end.got
			res.absent, res.missing = end.absent != nil, end.absent
		default:
			panic(end)
		}
		res.answered = lastWord(s.log)
		s.hangUp()
		if o.Peer != nil {
			o.Peer.Release()
		}
		if o.SCTPListener != nil {
			o.SCTPListener.Release()
		}
		res.Dialogue, res.Took = s.log, time.Since(s.begun)
	}()
	c.dialogue()(s)
	return res
}
