package probe

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrStopped says that the peer has answered questions, and then stopped answering. Other errors wrap it.
var ErrStopped = errors.New("the peer stopped answering")

// A Stop is where a peer stopped answering: after the question Number, Last, all questions up to which are settled.
// At is the question that then got no answer, as little as the control question did.
type Stop struct {
	Number int    `json:"number"`
	Last   string `json:"last"`
	At     string `json:"at"`
	// Why is what came in place of an answer, in words.
	Why string `json:"why"`

	err *notReached // if it is that
}

// String says after which question.
func (s *Stop) String() string {
	return fmt.Sprintf("%v after question %d, %s", ErrStopped, s.Number, s.Last)
}

// Err is the error of a report with it, or nil.
func (s *Stop) Err() error {
	switch {
	case s == nil:
		return nil
	case s.err != nil:
		return fmt.Errorf("probe: %w after question %d, %s: %w: %w",
			ErrStopped, s.Number, s.Last, s.err.kind, s.err.err)
	}
	return fmt.Errorf("probe: %w after question %d, %s: %s", ErrStopped, s.Number, s.Last, s.Why)
}

// A notReached is why there was no connection for a question.
type notReached struct {
	question  string
	kind, err error // kind is ErrUnreachable or ErrNoAssociation
}

// Error says for which question, and why gives the reason alone.
func (e *notReached) Error() string { return "probe: " + e.question + ": " + e.why() }

func (e *notReached) why() string { return e.kind.Error() + ": " + e.err.Error() }

// Unwrap returns both.
func (e *notReached) Unwrap() []error { return []error{e.kind, e.err} }

// An Absence is a time for which the peer did not answer what it had answered before. The question was asked again
// then.
type Absence struct {
	Question     string  `json:"question"`
	Milliseconds float64 `json:"ms"`
}

// A presence tells a peer that does not answer a question from one that is no longer there. What decides is a control
// question: the one that the peer has answered first.
type presence struct {
	timeout time.Duration // for each answer
	giveUp  time.Duration // how long the peer may be away
	// again asks the control question, with a time for the answer. Its error says what came in place of an answer. It
	// is nil until the peer has answered something.
	again func(wait time.Duration) error
	stop  *Stop
	rest  []string // questions that were not asked
	over  error    // why the rest was not: the time was over, or there was an interrupt
}

// recess is between two attempts to reach a peer that is away.
const recess = 500 * time.Millisecond

// known reports whether the peer has answered anything, so that there is a control question.
func (w *presence) known() bool { return w.again != nil }

// A reaction is what a peer does after a question.
type reaction interface {
	isAnswered() bool
	outcome() Outcome
}

// keepControl keeps the control question. ask asks it, with a time for the answer.
func (w *presence) keepControl(ask func(wait time.Duration) (reaction, error)) {
	w.again = func(wait time.Duration) error {
		r, err := ask(wait)
		if err == nil && !r.isAnswered() {
			err = noAnswer{r.outcome()}
		}
		return err
	}
}

// persist tries until something succeeds, for giveUp at most. It returns for how long the first attempts failed, and
// the last error.
func (w *presence) persist(b *budget, try func(wait time.Duration) error) (away time.Duration, err error) {
	began := time.Now()
	for {
		left := w.giveUp - time.Since(began)
		if err = try(max(0, min(w.timeout, left))); err == nil || b.spent() != nil || left <= recess {
			return away, err
		}
		b.sleep(recess)
		away = time.Since(began)
	}
}

// leave notes that the peer is gone: after the questions that are settled, at one that has no answer.
func (w *presence) leave(number int, last, at string, why error) {
	w.stop = &Stop{Number: number, Last: last, At: at, Why: why.Error()}
	if lost := new(notReached); errors.As(why, &lost) {
		w.stop.Why, w.stop.err = lost.why(), lost
	}
}

// spare notes a question that is not asked. Some stages come to a question twice.
func (w *presence) spare(name string) {
	if !slices.Contains(w.rest, name) && (w.stop == nil || w.stop.At != name) {
		w.rest = append(w.rest, name)
	}
}

// cut notes that a question was not asked, or not to its end, for a reason that all that follow have, too.
func (w *presence) cut(name string, over error) {
	w.spare(name)
	if w.over == nil {
		w.over = over
	}
}

// A noAnswer is why a question counts as not answered.
type noAnswer struct{ outcome Outcome }

// Error says what the peer does.
func (e noAnswer) Error() string {
	switch {
	case e.outcome == Silent:
		return "it takes connections, and says nothing"
	case e.outcome.Refused(), e.outcome == Aborted:
		return "it takes connections, and ends them without a word"
	}
	return "it takes connections, and answers what is no answer"
}
