package probe

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DefaultLimit is how long a peer is asked, all questions together.
const DefaultLimit = 3 * time.Minute

// ErrOutOfTime says that the limit of the probe was over before the last question. Other errors wrap it.
var ErrOutOfTime = errors.New("the time for all questions is over")

// A budget is the time that there is for all questions.
type budget struct {
	ctx   context.Context // ends with it
	limit time.Duration
	by    time.Time
	outer context.Context
	end   context.CancelFunc
}

func newBudget(ctx context.Context, limit time.Duration) budget {
	b := budget{limit: limit, by: time.Now().Add(limit), outer: ctx}
	b.ctx, b.end = context.WithDeadline(ctx, b.by)
	return b
}

// spent returns the error of the caller's context, an ErrOutOfTime, or nil.
func (b *budget) spent() error {
	switch {
	case b.outer.Err() != nil:
		return b.outer.Err()
	case !time.Now().Before(b.by):
		return fmt.Errorf("probe: %w: %v", ErrOutOfTime, b.limit)
	}
	return nil
}

// within is as much of a wait as there is time for.
func (b *budget) within(wait time.Duration) time.Duration { return min(wait, time.Until(b.by)) }

// sleep lets time pass, unless the time for all questions is over.
func (b *budget) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
	}
}
