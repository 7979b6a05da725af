package monitor

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/goiwarp/iwarp/internal/serve"
)

// services collects what a Server counts.
type services struct {
	of                                  *serve.Server
	connections, ended, rejected, ready *prometheus.Desc
}

func newServices(of *serve.Server) *services {
	return &services{
		of: of,
		connections: prometheus.NewDesc("iwarp_serve_connections", "Connections that are served.",
			[]string{"service"}, nil),
		ended: prometheus.NewDesc("iwarp_serve_connections_ended_total",
			"Connections that have ended: in order, because another needed their place, or failed.",
			[]string{"service", "outcome"}, nil),
		rejected: prometheus.NewDesc("iwarp_serve_rejected_total",
			"Requests rejected, because no service knew them, theirs is off, there were too many connections, or theirs had another reason.", []string{"reason"}, nil),
		ready: prometheus.NewDesc("iwarp_serve_ready", "Whether connections are taken.", nil, nil),
	}
}

// Describe tells of all metrics.
func (c *services) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.connections, c.ended, c.rejected, c.ready} {
		to <- d
	}
}

// Collect reads them.
func (c *services) Collect(to chan<- prometheus.Metric) {
	s := c.of.Stats()
	emit := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	for name, service := range s.Services {
		emit(c.connections, prometheus.GaugeValue, float64(service.Connections), name)
		emit(c.ended, prometheus.CounterValue, float64(service.Ended), name, "in_order")
		emit(c.ended, prometheus.CounterValue, float64(service.GaveWay), name, "gave_way")
		emit(c.ended, prometheus.CounterValue, float64(service.Failed), name, "failed")
	}
	emit(c.rejected, prometheus.CounterValue, float64(s.Unknown), "unknown")
	emit(c.rejected, prometheus.CounterValue, float64(s.Off), "off")
	emit(c.rejected, prometheus.CounterValue, float64(s.Full), "full")
	emit(c.rejected, prometheus.CounterValue, float64(s.Declined), "declined")
	emit(c.ready, prometheus.GaugeValue, readiness(s.State))
}
