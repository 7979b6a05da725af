package metrics_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/metrics"
)

// The counters of an RNIC in a registry of Prometheus', of which promhttp.HandlerFor makes what is scraped.
func Example() {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.New(rnic, "iwarp0"))

	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		if family.GetName() == "iwarp_startups_established_total" {
			fmt.Println(family.GetHelp(), family.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output: Startups that ended in a connection. 0
}
