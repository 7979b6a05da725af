package monitor

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// disks collects what a Target counts.
type disks struct {
	of                                           *target.Target
	state                                        func() serve.State
	controllers, queues, commands, faults, ready *prometheus.Desc
}

func newDisks(of *target.Target, state func() serve.State) *disks {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("iwarp_disk_"+name, help, nil, nil)
	}
	return &disks{
		of: of, state: state,
		controllers: desc("controllers", "Controllers of hosts that are connected."),
		queues:      desc("queues", "Connections of hosts: one for each of their queues."),
		commands:    desc("commands_total", "Commands that were answered, whatever the status."),
		faults:      desc("faults_total", "Commands that failed because the disk did. The log has the first of each connection."),
		ready:       desc("ready", "Whether hosts are taken."),
	}
}

// Describe tells of all metrics.
func (c *disks) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.controllers, c.queues, c.commands, c.faults, c.ready} {
		to <- d
	}
}

// Collect reads them.
func (c *disks) Collect(to chan<- prometheus.Metric) {
	s := c.of.Stats()
	emit := func(d *prometheus.Desc, kind prometheus.ValueType, value float64) {
		to <- prometheus.MustNewConstMetric(d, kind, value)
	}
	emit(c.controllers, prometheus.GaugeValue, float64(s.Controllers))
	emit(c.queues, prometheus.GaugeValue, float64(s.Queues))
	emit(c.commands, prometheus.CounterValue, float64(s.Commands))
	emit(c.faults, prometheus.CounterValue, float64(s.Faults))
	emit(c.ready, prometheus.GaugeValue, readiness(c.state()))
}

// readiness is 1 while connections are taken.
func readiness(state serve.State) float64 {
	if state == serve.Serving {
		return 1
	}
	return 0
}
