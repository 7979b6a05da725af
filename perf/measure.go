package perf

import (
	"context"
	"errors"
	"math"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Rounds is into how many slices, alternating between iWARP and TCP, the time
// for a quantity is cut.
const Rounds = 5

// reasonWait is how long the responder gets to say why a slice failed.
const reasonWait = 2 * time.Second

// A measurement is the initiator's way through all that is to be measured.
type measurement struct {
	*session
	watch  Observer
	report Report
	salt   int // of the last slice
	step   int // quantities done
	start  time.Time
}

func (m *measurement) run(ctx context.Context) error {
	m.start = time.Now()
	m.report.Options = m.opts
	m.report.Negotiated = negotiated(m.qps[0].qp)
	if m.watch.Connected != nil {
		m.watch.Connected(m.report.Negotiated)
	}
	for _, op := range m.opts.Ops {
		for _, size := range m.opts.Sizes {
			if err := m.result(ctx, op, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// result measures one operation at one size.
func (m *measurement) result(ctx context.Context, op Op, size int) error {
	bw, err := m.series(ctx, op, size, Bandwidth)
	if err != nil {
		return err
	}
	lat, err := m.series(ctx, op, size, Latency)
	if err != nil {
		return err
	}
	r := newResult(op, size, m.depth(op, size), bw, lat)
	m.report.Results = append(m.report.Results, r)
	if m.watch.Result != nil {
		m.watch.Result(r)
	}
	return nil
}

// depth returns how many messages may be under way on a connection.
func (m *measurement) depth(op Op, size int) int {
	depth := m.opts.slots(size)
	if ord := m.report.Negotiated.ORD; op == Read {
		depth = max(1, min(depth, ord))
	}
	return depth
}

func (m *measurement) transports() []Transport {
	if m.opts.NoBaseline {
		return []Transport{IWARP}
	}
	return []Transport{IWARP, TCP}
}

// series measures one quantity, in rounds that alternate between transports
// and take turns in who is first.
func (m *measurement) series(ctx context.Context, op Op, size int, q Quantity) (series, error) {
	s := series{qps: m.opts.QPs}
	transports := m.transports()
	jobs := make([]job, len(transports))
	for i, t := range transports {
		jobs[i] = job{Transport: t, Op: op, Quantity: q, Size: size, Slots: m.opts.slots(size), Depth: m.depth(op, size), Poll: m.polls(op, q, size), Corrupt: m.opts.Corrupt}
		m.progress(jobs[i], 0)
		if err := m.calibrate(ctx, &jobs[i]); err != nil {
			return s, err
		}
	}
	for round := range Rounds {
		for turn := range jobs {
			j := &jobs[(round+turn)%len(jobs)]
			m.progress(*j, round)
			sample, err := m.slice(ctx, *j)
			if err != nil {
				return s, err
			}
			s.add(*j, sample)
			j.Count = rescaled(j.Count, sample.elapsed, m.target())
		}
	}
	m.step++
	return s, nil
}

// target is how long a slice is to take.
func (m *measurement) target() time.Duration { return m.opts.Duration / Rounds }

// pollBelow is up to which size it pays to poll, in octets: larger messages take
// longer than one would care to poll for.
const pollBelow = 16 << 10

// polls says whether the ends poll for completions. For Reads they do not: their
// source has no consumer that could, and spinning would only take a CPU from its QP.
func (m *measurement) polls(op Op, q Quantity, size int) bool {
	return q == Latency && op != Read && size <= pollBelow && !m.opts.Events
}

// calibrate finds out how many messages a slice has time for. It warms caches
// and connections up on the way.
func (m *measurement) calibrate(ctx context.Context, j *job) error {
	j.Count = firstCount(*j)
	for {
		s, err := m.slice(ctx, *j)
		if err != nil {
			return err
		}
		j.Count = rescaled(j.Count, s.elapsed, m.target())
		if s.elapsed >= m.target()/4 {
			return nil
		}
	}
}

func firstCount(j job) int {
	if j.Quantity == Latency {
		return 4
	}
	return max(8, min(256, (64<<10)/j.Size))
}

// rescaled returns how many messages would have taken the target's time: a
// tenth to ten times as many as before, as a single slice can mislead.
func rescaled(count int, elapsed, target time.Duration) int {
	factor := float64(target) / float64(max(elapsed, 1))
	return max(2, int(math.Round(float64(count)*min(max(factor, 0.1), 10))))
}

// slice runs one slice, and verifies at both ends what it has moved.
func (m *measurement) slice(ctx context.Context, j job) (sample, error) {
	m.salt = (m.salt + 7919) % period
	j.Salt = m.salt
	if err := m.prepare(j); err != nil {
		return sample{}, err
	}
	if _, err := m.ctl.call(ctx, request{Slice: &j}); err != nil {
		return sample{}, err
	}
	var rtt *hdr.Histogram
	if j.Quantity == Latency {
		rtt = newHistogram()
	}
	elapsed, err := m.initiate(ctx, j, rtt)
	if err != nil {
		return sample{}, m.reason(ctx, err)
	}
	if _, err := m.ctl.call(ctx, request{Check: true}); err != nil {
		return sample{}, err
	}
	return sample{count: j.Count, elapsed: elapsed, rtt: rtt}, m.check(j)
}

// reason asks the responder what went wrong; it may know better than we, who
// have perhaps only seen a connection end.
func (m *measurement) reason(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, reasonWait)
	defer cancel()
	m.abort()
	var peer *PeerError
	if _, answer := m.ctl.call(ctx, request{Check: true}); errors.As(answer, &peer) {
		return errors.Join(err, peer)
	}
	return err
}

// A sample is what a slice has measured.
type sample struct {
	count   int // messages on each connection
	elapsed time.Duration
	rtt     *hdr.Histogram // nanoseconds; nil for bandwidth
}

// Progress says how far a measurement is.
type Progress struct {
	Transport Transport
	Op        Op
	Quantity  Quantity
	Size      int     // octets
	Round     int     // of Rounds, from 0
	Done      float64 // part of the whole, 0 to 1
	Elapsed   time.Duration
}

func (m *measurement) progress(j job, round int) {
	if m.watch.Progress == nil {
		return
	}
	all := 2 * len(m.opts.Ops) * len(m.opts.Sizes)
	m.watch.Progress(Progress{Transport: j.Transport, Op: j.Op, Quantity: j.Quantity, Size: j.Size, Round: round,
		Done: (float64(m.step) + float64(round)/Rounds) / float64(all), Elapsed: time.Since(m.start)})
}
