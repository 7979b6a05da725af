package perf

import (
	"context"
	"time"
)

// A measurement is the initiator's way through all that is to be measured.
type measurement struct {
	bandwidth, latency *session // the same, unless latency has a responder of its own
	opts               Options
	watch              Observer
	report             Report
	salt               int           // of the last slice
	step               int           // quantities done
	trip               time.Duration // the path's shortest round trip so far
	start              time.Time
}

// sessions are those of the measurement, each once.
func (m *measurement) sessions() []*session {
	if m.bandwidth == m.latency {
		return []*session{m.bandwidth}
	}
	return []*session{m.bandwidth, m.latency}
}

func (m *measurement) run(ctx context.Context) error {
	m.start = time.Now()
	m.report.Options = m.opts
	m.report.Negotiated = negotiated(m.opts.Network, m.bandwidth.qps[0].qp)
	m.report.Negotiated.CC, m.report.Negotiated.CCPeer = m.bandwidth.ccHere, m.bandwidth.ccThere
	if m.watch.Connected != nil {
		m.watch.Connected(m.report.Negotiated)
	}
	if err := m.probe(ctx); err != nil {
		return err
	}
	for _, op := range m.opts.Ops {
		for _, size := range m.opts.sizesOf(op) {
			if err := m.result(ctx, op, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// result measures one operation at one size.
func (m *measurement) result(ctx context.Context, op Op, size int) error {
	before := m.bandwidth.both()
	bw, err := m.series(ctx, m.bandwidth, op, size, Bandwidth)
	if err != nil {
		return err
	}
	ahead, path := m.bandwidth.aheadSince(before), m.bandwidth.qps[0].qp.Stats()
	sum := func(lat series) Result {
		r := newResult(op, size, m.depth(op, size), bw, lat)
		if op.tells() {
			r.RXDepth = m.opts.rxDepth(size)
		}
		r.Ahead, r.EMSS, r.MULPDU = ahead, path.EMSS, path.MULPDU
		return r
	}
	if m.watch.Bandwidth != nil {
		m.watch.Bandwidth(sum(series{}))
	}
	lat, err := m.series(ctx, m.latency, op, size, Latency)
	if err != nil {
		return err
	}
	r := sum(lat)
	if err := m.countCalls(ctx, &r, bw, lat); err != nil {
		return err
	}
	m.report.Results = append(m.report.Results, r)
	if m.watch.Result != nil {
		m.watch.Result(r)
	}
	return nil
}

// depth returns how many messages may be under way on a connection.
func (m *measurement) depth(op Op, size int) int {
	depth := m.opts.depth(size)
	if ord := m.report.Negotiated.ORD; op.Fetches() {
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

// newJob returns a slice of a series, as yet without a count.
func (m *measurement) newJob(t Transport, op Op, size int, q Quantity) job {
	j := job{
		Transport: t, Op: op, Quantity: q, Size: size, Slots: m.opts.slots(op, size), Depth: m.depth(op, size),
		Both: m.opts.Bidirectional && q == Bandwidth, Poll: m.opts.Poll, Corrupt: m.opts.Corrupt,
		PostList: m.opts.PostList, CQMod: m.opts.CQMod, Inline: !op.Fetches() && size <= m.opts.Inline,
		AnyLap: m.opts.overtaken() && t == IWARP && op.untold() && q == Bandwidth,
	}
	if q == Latency { // whose session may have fewer buffers
		j.Slots = min(m.latency.opts.slots(op, size), latencySlots)
		j.Depth = min(j.Depth, j.Slots)
	}
	return j
}

// series measures one quantity, in pairs of slices which take turns in who is first. It
// goes on, within limits, until enough pairs were not disturbed.
func (m *measurement) series(ctx context.Context, s *session, op Op, size int, q Quantity) (series, error) {
	transports := m.transports()
	c, began := m.opts.cut(q, m.trip), time.Now()
	all := series{
		streams: s.opts.streams(q), want: c.pairs, keep: m.opts.KeepDisturbed || c.pairs < judgedFrom,
		trip: m.trip, bound: m.opts.bound(c, len(transports)),
	}
	jobs := make([]job, len(transports))
	for i, t := range transports {
		jobs[i] = m.newJob(t, op, size, q)
		m.progress(jobs[i], 0, &all)
		if err := m.warmUp(ctx, s, &jobs[i], c); err != nil {
			return all, err
		}
	}
	for round := 0; !all.enough(round); round++ {
		for turn := range jobs {
			j := &jobs[(round+turn)%len(jobs)]
			m.progress(*j, round, &all)
			x, err := m.slice(ctx, s, *j)
			if err != nil {
				return all, err
			}
			all.add(*j, x)
			m.rescale(j, x.elapsed, c.slice)
		}
		all.took = time.Since(began)
	}
	m.step++
	return all, nil
}

// countCalls adds system calls, which are counted in slices of their own: that makes each
// call slower. A row too short for a verdict does not take the time.
func (m *measurement) countCalls(ctx context.Context, r *Result, bw, lat series) error {
	if !r.Judged() {
		return nil
	}
	defer m.bandwidth.stopCounting()
	defer m.latency.stopCounting()
	for _, t := range m.transports() {
		f := &r.Figures
		if t == TCP {
			f = r.TCP
		}
		var err error
		if f.Calls, err = m.calls(ctx, m.bandwidth, m.newJob(t, r.Op, r.Size, Bandwidth), bw.of(t)); err != nil {
			return err
		}
		if f.CallsLat, err = m.calls(ctx, m.latency, m.newJob(t, r.Op, r.Size, Latency), lat.of(t)); err != nil {
			return err
		}
	}
	return nil
}

// calls runs a slice as long as the last one of the series and returns the system calls for
// a message.
func (m *measurement) calls(ctx context.Context, s *session, j job, samples []sample) (float64, error) {
	j.Count, j.Calls = samples[len(samples)-1].count, true
	x, err := m.slice(ctx, s, j)
	return float64(x.usage.Calls) / j.messages(s.opts.QPs), err
}

// Progress says how far a measurement is.
type Progress struct {
	Transport Transport
	Op        Op
	Quantity  Quantity
	Size      int     // bytes
	Round     int     // pairs of slices done, from 0
	MsgRate   float64 // millions of messages a second, in the Transport's slices so far; of latency 0
	Done      float64 // part of the whole, 0 to 1
	Elapsed   time.Duration
}

func (m *measurement) progress(j job, round int, s *series) {
	if m.watch.Progress == nil {
		return
	}
	all := 0
	for _, op := range m.opts.Ops {
		all += 2 * len(m.opts.sizesOf(op))
	}
	part := min(float64(round)/float64(s.want), 0.99)
	m.watch.Progress(Progress{Transport: j.Transport, Op: j.Op, Quantity: j.Quantity, Size: j.Size, Round: round,
		MsgRate: s.msgRate(j), Done: (float64(m.step) + part) / float64(all), Elapsed: time.Since(m.start)})
}
