package main

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp"
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

// nextJob returns a job for a worker, or else a channel that is closed when there may be one.
func (b *boss) nextJob() (job int, more <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) == 0 {
		return 0, b.more, false
	}
	job, b.open = b.open[0], b.open[1:]
	return job, nil, true
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

// Messages are a number of a job (4 bytes) and a text, which is the job or its result.
const (
	messageLen = 4096
	textLen    = messageLen - 4
	maxCredits = 64 // jobs that a worker may have at a time
)

var errTooLong = errors.New("a message has no room for so long a job")

func message(job int, text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(job)), text...)
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
		if conn, err := req.Reject([]byte("how many jobs at a time?")); err == nil {
			_ = conn.Close()
		}
		return
	}
	w := &desk{credits: int(asked[0]), has: map[int]bool{}}
	qp, err := req.Accept(ctx, iwarp.AcceptConfig{Prepare: w.prepare})
	if err != nil {
		_ = req.Close()
		return
	}
	b.occupy(ctx, w)
	b.giveBack(w.has)
	_ = qp.Close() // which the worker takes for the end of the day
}

// A desk is what the boss has for one worker.
type desk struct {
	mailbox
	credits int          // jobs that it can take now
	has     map[int]bool // those that it has
}

func (w *desk) prepare(qp *iwarp.QP) error { return w.mailbox.open(qp, w.credits) }

// occupy keeps a worker busy: while it has credits it gets jobs, and each result gives a credit back.
func (b *boss) occupy(ctx context.Context, w *desk) {
	for {
		job, more, ok := 0, (<-chan struct{})(nil), false
		if w.credits > 0 {
			job, more, ok = b.nextJob()
		}
		if ok {
			w.has[job] = true
			w.credits--
			if w.send(message(job, b.jobs[job])) != nil {
				return
			}
			continue
		}
		job, result, err := w.next(ctx, more)
		switch {
		case errors.Is(err, errMore):
		case err != nil || !w.has[job]: // it has gone, or has done what nobody asked for
			return
		default:
			delete(w.has, job)
			w.credits++
			b.finish(job, result)
		}
	}
}
