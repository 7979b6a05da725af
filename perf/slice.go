package perf

import (
	"context"
	"errors"
	"math"
	"time"
)

// reasonWait is how long the responder gets to say why a slice failed.
const reasonWait = 2 * time.Second

// settledAfter is how many slices of about the full length precede those that count: TCP
// has then come to know the path, and the EMSS no longer changes.
const (
	settledAfter = 2
	maxWarmUp    = 20
)

// warmUp finds out how many messages a slice has time for, and goes on until the EMSS has
// settled, and over a long path the rate.
func (m *measurement) warmUp(ctx context.Context, s *session, j *job, c cut) error {
	j.Count = m.firstCount(*j, c.pairs)
	w := warming{cut: c, long: m.opts.Iters == 0 && c.slice > sliceTime && j.Quantity.trips()*m.trip > sliceTime}
	for range maxWarmUp {
		x, err := m.slice(ctx, s, *j)
		if err != nil {
			return err
		}
		if w.settled(x, s.mulpdu(*j), m.opts.Iters > 0) {
			m.rescale(j, x.elapsed, c.slice)
			break
		}
		m.rescale(j, x.elapsed, w.next())
	}
	return nil
}

// growing is by how much more the rate of a slice may be than that of those before, if it has settled.
const growing = 1.1

// A warming is the slices of a warm-up.
type warming struct {
	cut
	long   bool // over a path with a long round trip, on which TCP's window takes a while to open
	full   int  // slices of about the full length
	mulpdu int
	rate   float64 // the highest of full slices
	spent  time.Duration
}

// next is how long the next slice is to take. Long ones need not be as long as those that count.
func (w *warming) next() time.Duration {
	if w.long {
		return w.slice / 2
	}
	return w.slice
}

// settled takes note of a slice, and reports whether the next ones count: nothing grows any more, or it has taken as
// long as what counts will.
func (w *warming) settled(x sample, mulpdu int, counted bool) bool {
	grown := w.long && x.rate() > growing*w.rate
	was := w.mulpdu
	w.mulpdu = mulpdu
	w.spent += x.elapsed
	if counted || x.elapsed >= w.slice/4 {
		w.full++
		w.rate = max(w.rate, x.rate())
	}
	late := w.long && w.spent >= w.slice*time.Duration(w.pairs)
	return w.full >= settledAfter && mulpdu == was && (!grown || late)
}

// mulpdu returns the sum of the MULPDUs of the connections that the slice uses.
func (s *session) mulpdu(j job) (sum int) {
	for _, l := range s.qps[:j.lanes(s.opts.QPs)] {
		sum += l.qp.Query().MULPDU
	}
	return sum
}

func (m *measurement) firstCount(j job, pairs int) int {
	switch {
	case m.opts.Iters > 0:
		return max(2, (m.opts.Iters+pairs-1)/pairs)
	case j.Quantity == Latency:
		return 4
	default:
		return max(8, min(256, (64<<10)/j.Size))
	}
}

// rescale sets the count of the next slice by how long the last one took.
func (m *measurement) rescale(j *job, elapsed, target time.Duration) {
	if m.opts.Iters == 0 {
		j.Count = rescaled(j.Count, elapsed, target)
	}
}

// rescaled returns how many messages would have taken the target's time: a
// tenth to ten times as many as before, as a single slice can mislead.
func rescaled(count int, elapsed, target time.Duration) int {
	factor := float64(target) / float64(max(elapsed, 1))
	return max(2, int(min(math.Round(float64(count)*min(max(factor, 0.1), 10)), maxCount)))
}

// slice runs one slice, and verifies at both ends what it has moved.
func (m *measurement) slice(ctx context.Context, s *session, j job) (sample, error) {
	m.salt = (m.salt + 7919) % period
	j.Salt = m.salt
	j.Apart = s.apart
	if err := s.prepare(j); err != nil {
		return sample{}, s.reason(ctx, err)
	}
	if _, err := s.ctl.call(ctx, request{Slice: &j}); err != nil {
		return sample{}, err
	}
	x, err := s.timed(ctx, j)
	if err != nil {
		return sample{}, s.reason(ctx, err)
	}
	m.noteTrip(j, x)
	checked, err := s.ctl.call(ctx, request{Check: true})
	if err != nil {
		return sample{}, err
	}
	s.there = checked.Arrived
	if checked.Usage != nil {
		x.usage = x.usage.plus(*checked.Usage)
	}
	return x, s.check(j)
}

// timed moves a slice, and takes its time.
func (s *session) timed(ctx context.Context, j job) (x sample, err error) {
	x.count = j.Count
	if j.Quantity == Latency {
		x.rtt = newHistogram()
	}
	if s.counter == nil && j.Calls {
		s.counter = newCallCounter()
	}
	meter := startMeter(s.counter)
	x.elapsed, err = s.initiate(ctx, j, x.rtt)
	x.usage = meter.usage()
	return x, err
}

// reason asks the responder what went wrong: it may know more than we do, if all
// that we saw was the end of a connection. One that has gone, or was interrupted, is the reason itself.
func (s *session) reason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err // it was cut, of which this responder knows no more than that
	}
	ctx, cancel := context.WithTimeout(ctx, reasonWait)
	defer cancel()
	s.abort()
	_, answer := s.ctl.call(ctx, request{Check: true})
	switch {
	case errors.As(answer, new(*PeerError)):
		return errors.Join(err, answer)
	case isEnd(answer):
		return answer
	}
	return err
}
