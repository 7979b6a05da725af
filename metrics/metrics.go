// Package metrics has the counters of an RNIC, of a QP, or of SCTP, for Prometheus.
//
//	registry := prometheus.NewRegistry()
//	registry.MustRegister(metrics.New(rnic, "iwarp0"))
//	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
//
// What Linux's drivers count too has the name that the infiniband collector of Prometheus' node exporter has for it,
// with the labels device and port, so that dashboards and alerts for RNICs show it; the port is always 1. All else
// begins with iwarp_ and has the label device. The figures are those of Stats, read at each scrape: nothing is counted
// twice, and nothing is kept. docs/metrics.md lists them.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// A Source is what the counters are of: an [iwarp.RNIC] or an [iwarp.QP].
type Source interface{ Stats() iwarp.Stats }

// An SCTPSource is an [iwarpsctp.Network].
//
// [iwarpsctp.Network]: https://pkg.go.dev/github.com/goiwarp/iwarp/iwarpsctp#Network
type SCTPSource interface{ Stats() sctp.Stats }

// A Collector collects the counters of a Source. It is a prometheus.Collector.
type Collector struct {
	read    func() stats
	metrics []metric
	descs   map[string]*prometheus.Desc
}

// New makes a Collector. device is the label by which several Sources are told apart in one registry.
func New(source Source, device string) *Collector {
	return newCollector(func() stats { return stats{Stats: source.Stats()} }, all, device)
}

// NewSCTP is New for what SCTP counts itself: beside the Collector of an RNIC, it may have the same device.
func NewSCTP(source SCTPSource, device string) *Collector {
	return newCollector(func() stats { return stats{sctp: source.Stats()} }, ofSCTP, device)
}

func newCollector(read func() stats, metrics []metric, device string) *Collector {
	c := &Collector{read: read, metrics: metrics, descs: make(map[string]*prometheus.Desc)}
	for _, m := range metrics {
		labels, fixed := m.labels(device)
		c.descs[m.name] = prometheus.NewDesc(m.name, m.help, labels, fixed)
	}
	return c
}

// Describe tells of all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		to <- c.descs[m.name]
	}
}

// Collect reads the counters.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	s := c.read()
	for _, m := range c.metrics {
		kind := prometheus.CounterValue
		if m.gauge {
			kind = prometheus.GaugeValue
		}
		m.read(&s, func(value uint64, labels ...string) {
			to <- prometheus.MustNewConstMetric(c.descs[m.name], kind, float64(value)/float64(max(m.per, 1)), labels...)
		})
	}
}

// A metric is one of those that there are.
type metric struct {
	name, help string
	label      string // beside the device; empty if there is none
	gauge      bool
	per        int // what is read is that many times the metric's value; zero is 1
	read       func(s *stats, emit func(value uint64, labels ...string))
}

// labels are those whose values the metric's values have, and those that are fixed.
func (m *metric) labels(device string) (names []string, fixed prometheus.Labels) {
	fixed = prometheus.Labels{"device": device}
	if _, ok := ofNode[m.name]; ok {
		fixed["port"] = "1"
	}
	if m.label != "" {
		names = []string{m.label}
	}
	return names, fixed
}

// one reads a metric without labels.
func one(value func(s *stats) uint64) func(*stats, func(uint64, ...string)) {
	return func(s *stats, emit func(uint64, ...string)) { emit(value(s)) }
}

// some reads a metric without labels that not every Source has.
func some(value func(s *stats) int) func(*stats, func(uint64, ...string)) {
	return func(s *stats, emit func(uint64, ...string)) {
		if n := value(s); n > 0 {
			emit(uint64(n))
		}
	}
}

// traffic reads a metric by opcode.
func traffic(of func(s *stats) map[rdmap.Opcode]iwarp.Traffic, value func(iwarp.Traffic) uint64) func(*stats,
	func(uint64, ...string)) {
	return func(s *stats, emit func(uint64, ...string)) {
		for op, t := range of(s) {
			emit(value(t), op.String())
		}
	}
}

// codes reads a metric by the code of a Terminate. Codes that no document has are one: a peer can send 65536 of them.
func codes(of func(s *stats) map[rdmap.Code]uint64) func(*stats, func(uint64, ...string)) {
	return func(s *stats, emit func(uint64, ...string)) {
		unknown := uint64(0)
		for code, n := range of(s) {
			if code.Known() {
				emit(n, code.String())
				continue
			}
			unknown += n
		}
		if unknown > 0 {
			emit(unknown, "unknown")
		}
	}
}

func sent(s *stats) map[rdmap.Opcode]iwarp.Traffic     { return s.Sent }
func received(s *stats) map[rdmap.Opcode]iwarp.Traffic { return s.Received }

func terminatesSent(s *stats) map[rdmap.Code]uint64     { return s.TerminatesSent }
func terminatesReceived(s *stats) map[rdmap.Code]uint64 { return s.TerminatesReceived }

func oddities(s *stats, emit func(uint64, ...string)) {
	emit(s.Odd.NotRTR, "not_rtr")
	emit(s.Odd.Early, "early")
	emit(s.Odd.Empty, "empty")
	emit(s.Odd.Disorder, "disorder")
	emit(s.Odd.Late, "late")
}

func objects(s *stats, emit func(uint64, ...string)) {
	emit(uint64(s.PDs), "pd")
	emit(uint64(s.QPs), "qp")
	emit(uint64(s.CQs), "cq")
	emit(uint64(s.SRQs), "srq")
	emit(uint64(s.MRs), "mr")
	emit(uint64(s.MWs), "mw")
}

func startupsFailed(s *stats, emit func(uint64, ...string)) {
	for reason, n := range s.Startup.Failed {
		emit(n, reason)
	}
}
