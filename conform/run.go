package conform

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
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
	absent        bool // there was no connection with the peer
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
	default:
		t.Inconclusive++
	}
}

// OK reports whether nothing failed and the run is complete. A run in which no case applied to the peer is not
// complete.
func (t *Summary) OK() bool { return t.Failed == 0 && t.Stopped == "" }

// patience is how many cases in a row may find nobody there.
const patience = 3

// Run runs the selected cases one after the other and hands every result to report, which may be nil.
// It stops early when the context ends, or when nobody can be connected any more, and before the
// first case if the peer speaks another protocol, or answers nothing at all or nothing whole. An error is about the
// options: it is a [*NoCasesError] if they select no case.
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
	if found.unanswered != "" && ctx.Err() == nil { // else nobody has waited for an answer
		sum.Stopped = found.unanswered
		return sum, nil
	}
	if found.foreign != "" {
		sum.NotMPA, sum.Stopped = true, "this is not MPA: the peer answers with "+found.foreign
		return sum, nil
	}
	var idle idleness
	o.runAll(ctx, cases, found.unspoken, &sum, func(r *Result) {
		idle.note(r)
		sum.Add(r.Verdict)
		if report != nil {
			report(r)
		}
	})
	sum.Stopped = cmp.Or(sum.Stopped, idle.text())
	o.tell(&sum)
	return sum, nil
}

// An idleness is that of a run in which no case applies: nothing was tested, and nothing is known of the peer.
type idleness struct {
	tested bool
	whys   []string // why not, each once
}

func (i *idleness) note(r *Result) {
	i.tested = i.tested || r.Verdict != NotApplicable
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

// runAll runs cases until one is interrupted or the peer is gone, and notes why it
// stopped. No case applies to a peer that does not speak MPA as unspoken says.
func (o *Options) runAll(ctx context.Context, cases []Case, unspoken string, sum *Summary, report func(*Result)) {
	absent, met := 0, false
	for _, c := range cases {
		res := Result{Case: c, Verdict: NotApplicable, Why: unspoken}
		if why := o.held(&c); why != "" {
			res.Why = why
		} else if unspoken == "" {
			res = o.run(ctx, c)
		}
		if ctx.Err() != nil {
			sum.Stopped, sum.Interrupted = "interrupted", true
			return
		}
		report(&res)
		switch {
		case res.absent:
			absent++
		case len(res.Dialogue) > 0:
			absent, met = 0, true
		}
		if absent == patience {
			break
		}
	}
	switch {
	case absent > 0 && met:
		sum.Stopped = "the peer cannot be connected any more"
	case absent > 0:
		sum.Stopped = "the peer cannot be connected"
	}
}

// RunCase runs one of [Cases], whether or not the options select it. Any other Case has no dialogue, and is an error; so is
// one over a network on which the options have no peer.
func RunCase(ctx context.Context, opts Options, c Case) (Result, error) {
	o, err := opts.resolved()
	switch {
	case err != nil:
		return Result{}, err
	case c.run == nil:
		return Result{}, fmt.Errorf("conform: the case %q has no dialogue: only those that Cases and Options.Selected return can be run", c.ID)
	case c.sctp && !o.overSCTP():
		return Result{}, fmt.Errorf("conform: the case %q is one over SCTP: %s", c.ID, noPeer)
	case !c.sctp && o.Peer == nil:
		return Result{}, fmt.Errorf("conform: the case %q is one over TCP: %s", c.ID, noPeer)
	}
	return o.run(ctx, c), nil
}

// run runs one case.
func (o *Options) run(ctx context.Context, c Case) (res Result) {
	s := &session{ctx: ctx, opts: o, c: &c, begun: time.Now()}
	res = Result{Case: c, Verdict: Pass}
	defer func() {
		switch end := recover().(type) {
		case nil:
		case outcome:
			res.Verdict, res.Why, res.Expected, res.Got, res.absent = end.verdict, end.why, end.expected, end.got, end.absent
		default:
			panic(end)
		}
		s.hangUp()
		if o.Peer != nil {
			o.Peer.Release()
		}
		if o.SCTPListener != nil {
			o.SCTPListener.Release()
		}
		res.Dialogue, res.Took = s.log, time.Since(s.begun)
	}()
	c.run(s)
	return res
}
