package conform

import (
	"context"
	"strings"
	"time"
)

// A Result is how one case ended.
type Result struct {
	Case    Case
	Verdict Verdict
	// Why is the reason of what is neither passed nor failed.
	Why string
	// Expected and Got tell of a failure: what the peer had to do, and what it did.
	Expected, Got string
	Dialogue      []Entry
	Took          time.Duration
}

// A Summary counts the results of a run.
type Summary struct {
	Passed        int `json:"passed"`
	Failed        int `json:"failed"`
	NotApplicable int `json:"not_applicable"`
	Inconclusive  int `json:"inconclusive"`
	// Stopped is why the run is not complete; empty if it is.
	Stopped string `json:"stopped,omitempty"`
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

// OK reports whether nothing failed and the run is complete.
func (t *Summary) OK() bool { return t.Failed == 0 && t.Stopped == "" }

// patience is how many cases in a row may find nobody there.
const patience = 3

// Run runs the selected cases one after the other and hands every result to report.
// It stops early when the context ends, or when nobody can be connected any more.
// The error is one of the options.
func Run(ctx context.Context, opts Options, report func(*Result)) (Summary, error) {
	var sum Summary
	o, err := opts.resolved()
	if err != nil {
		return sum, err
	}
	unspoken := o.probe(ctx)
	absent := 0
	for _, c := range o.Selected() {
		res := Result{Case: c, Verdict: NotApplicable, Why: unspoken}
		if why := o.held(&c); why != "" {
			res.Why = why
		} else if unspoken == "" {
			res = o.run(ctx, c)
		}
		if ctx.Err() != nil {
			sum.Stopped = "interrupted"
			return sum, nil
		}
		sum.Add(res.Verdict)
		report(&res)
		switch {
		case strings.HasPrefix(res.Why, noConnection):
			absent++
		case len(res.Dialogue) > 0:
			absent = 0
		}
		if absent == patience {
			break
		}
	}
	if absent > 0 {
		sum.Stopped = "the peer cannot be connected any more"
	}
	return sum, nil
}

// RunCase runs one case, whether or not the options select it.
func RunCase(ctx context.Context, opts Options, c Case) (Result, error) {
	o, err := opts.resolved()
	if err != nil {
		return Result{}, err
	}
	return o.run(ctx, c), nil
}

// run runs one case.
func (o *Options) run(ctx context.Context, c Case) (res Result) {
	s := &Session{ctx: ctx, opts: o, c: &c, begun: time.Now()}
	res = Result{Case: c, Verdict: Pass}
	defer func() {
		switch end := recover().(type) {
		case nil:
		case outcome:
			res.Verdict, res.Why, res.Expected, res.Got = end.verdict, end.why, end.expected, end.got
		default:
			panic(end)
		}
		s.hangUp()
		o.Peer.Release()
		res.Dialogue, res.Took = s.log, time.Since(s.begun)
	}()
	c.Run(s)
	return res
}
