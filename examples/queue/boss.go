package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/credits"
)

// A boss has jobs, each a text, and collects a result for each.
type boss struct {
	mu      sync.Mutex
	jobs    []string
	results []string
	open    []int         // jobs that nobody has, or whose worker has gone
	left    int           // jobs without a result
	more    chan struct{} // is closed, and replaced, when there is an open job again
	done    chan struct{} // is closed when all have a result
}

func newBoss(jobs []string) *boss {
	b := &boss{jobs: jobs, results: make([]string, len(jobs)), left: len(jobs), more: make(chan struct{}), done: make(chan struct{})}
	for i := range jobs {
		b.open = append(b.open, i)
	}
	if len(jobs) == 0 {
		close(b.done)
	}
	return b
}

// awaitJob returns a job for a worker, and waits for one.
func (b *boss) awaitJob(ctx context.Context) (job int, err error) {
	for {
		b.mu.Lock()
		more := b.more
		if len(b.open) > 0 {
			job, b.open = b.open[0], b.open[1:]
			b.mu.Unlock()
			return job, nil
		}
		b.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// giveBack has others do the jobs that a worker had when it went.
func (b *boss) giveBack(jobs map[int]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for job := range jobs {
		b.open = append(b.open, job)
	}
	close(b.more)
	b.more = make(chan struct{})
}

// finish takes a result.
func (b *boss) finish(job int, result string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[job] = result
	if b.left--; b.left == 0 {
		close(b.done)
	}
}

// handOut serves workers until all jobs have a result, and sends them home.
func (b *boss) handOut(ctx context.Context, ln *iwarp.Listener) ([]string, error) {
	if slices.ContainsFunc(b.jobs, func(job string) bool { return len(job) > textLen }) {
		return nil, errors.Join(errTooLong, ln.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var workers sync.WaitGroup
	go func() {
		for {
			req, err := ln.Accept(ctx)
			if err != nil {
				return
			}
			workers.Go(func() { b.employ(ctx, req) })
		}
	}()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	err := errors.Join(ctx.Err(), ln.Close())
	stop() // which ends what employ waits for
	workers.Wait()
	return b.results, err
}

// employ accepts a worker, and gives it jobs as long as there are some.
func (b *boss) employ(ctx context.Context, req *iwarp.Request) {
	asked := req.PrivateData()
	if len(asked) != 1 || asked[0] == 0 || asked[0] > maxCredits {
		_ = req.Reject([]byte("how many jobs at a time?"))
		return
	}
	atATime := int(asked[0])
	qp, err := req.Accept(ctx, iwarp.AcceptConfig{QP: receiving(atATime)})
	if err != nil {
		_ = req.Close()
		return
	}
	w := &desk{qp: qp, credits: credits.New(qp, atATime), has: map[int]bool{}}
	ctx, stop := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() { b.give(ctx, w) })
	b.collect(ctx, w)
	stop()
	sending.Wait()
	b.giveBack(w.has)
	_ = qp.Close() // which the worker takes for the end of the day
}

// A desk is what the boss has for one worker.
type desk struct {
	qp      *iwarp.QP
	credits *credits.Credits // how many jobs the worker can take

	mu  sync.Mutex
	has map[int]bool // the jobs that it has
}

// give gives a worker jobs while there are some, and it can take them.
func (b *boss) give(ctx context.Context, w *desk) {
	for w.credits.Take(ctx) == nil {
		job, err := b.awaitJob(ctx)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.has[job] = true
		w.mu.Unlock()
		if send(w.qp, job, b.jobs[job]) != nil {
			return
		}
	}
}

// collect takes the results of a worker, until it goes, or has one for what nobody asked. Each gives a credit back.
func (b *boss) collect(ctx context.Context, w *desk) {
	for {
		job, result, err := receive(ctx, w.qp)
		if err != nil || !w.finish(job) || w.credits.Give(1) != nil {
			return
		}
		b.finish(job, result)
	}
}

// finish reports whether the worker had the job, which it has no more.
func (w *desk) finish(job int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := w.has[job]
	delete(w.has, job)
	return had
}
