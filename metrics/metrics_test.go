package metrics_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/metrics"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// counted is a Source whose every number is another one.
type counted struct{ stats iwarp.Stats }

func (c counted) Stats() iwarp.Stats { return c.stats }

// number gives every number in v, of a struct or a map, a value of its own.
func number(v reflect.Value, next *uint64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			number(v.Field(i), next)
		}
	case reflect.Map:
		entry := reflect.New(v.Type().Elem()).Elem()
		number(entry, next)
		v.Set(reflect.MakeMap(v.Type()))
		key := reflect.New(v.Type().Key()).Elem()
		if key.Kind() == reflect.String {
			key.SetString("timeout")
		}
		v.SetMapIndex(key, entry)
	case reflect.Int64: // a time.Duration, which the metric has in seconds
		*next++
		v.SetInt(int64(*next) * int64(time.Second))
	case reflect.Int:
		*next++
		v.SetInt(int64(*next))
	case reflect.Uint64:
		*next++
		v.SetUint(*next)
	}
}

// overSCTP counts what SCTP does.
type overSCTP struct{ stats sctp.Stats }

func (o overSCTP) Stats() sctp.Stats { return o.stats }

// gather returns the metrics of a Source, and of SCTP, which are as Prometheus wants them.
func gather(t *testing.T, s metrics.Source, over metrics.SCTPSource) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	testrig.Must(t, registry.Register(metrics.New(s, "iwarp0")))
	testrig.Must(t, registry.Register(metrics.NewSCTP(over, "iwarp0")))
	problems, err := testutil.GatherAndLint(registry)
	testrig.Must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	all, err := registry.Gather()
	testrig.Must(t, err)
	return all
}

// TestEveryNumber: each number of the Stats is in one metric, and a field that is added to Stats has to be, too.
func TestEveryNumber(t *testing.T) {
	var s struct {
		RNIC iwarp.Stats
		SCTP sctp.Stats
	}
	count := uint64(0)
	number(reflect.ValueOf(&s).Elem(), &count)
	found := make(map[uint64]string)
	for _, family := range gather(t, counted{s.RNIC}, overSCTP{s.SCTP}) {
		for _, m := range family.Metric {
			value := uint64(m.GetCounter().GetValue() + m.GetGauge().GetValue())
			if other := found[value]; other != "" {
				t.Errorf("%s and %s have the same number", other, family.GetName())
			}
			found[value] = family.GetName()
		}
	}
	for n := uint64(1); n <= count; n++ {
		if found[n] == "" {
			t.Errorf("number %d of %d is in no metric", n, count)
		}
	}
	if count < 40 {
		t.Errorf("%d numbers are not all", count)
	}
}

// TestUnknownCodes: a peer that sends Terminates with codes of its own makes one series of them.
func TestUnknownCodes(t *testing.T) {
	s := iwarp.Stats{TerminatesReceived: map[rdmap.Code]uint64{0x0100: 3}}
	for code := rdmap.Code(0x7000); code < 0x7100; code++ {
		s.TerminatesReceived[code] = 1
	}
	for _, family := range gather(t, counted{s}, overSCTP{}) {
		if family.GetName() != "iwarp_terminates_received_total" {
			continue
		}
		got := fmt.Sprint(family.Metric)
		if len(family.Metric) != 2 || !strings.Contains(got, `"unknown"`) || !strings.Contains(got, "256") {
			t.Errorf("%s", got)
		}
		return
	}
	t.Error("no such metric")
}

// TestNothing: what a Source has no number of has no metric, as an RNIC has no EMSS; a known code alone is no unknown
// one.
func TestNothing(t *testing.T) {
	for _, family := range gather(t, counted{iwarp.Stats{TerminatesReceived: map[rdmap.Code]uint64{0x0100: 3}}},
		overSCTP{}) {
		switch name := family.GetName(); {
		case name == "iwarp_emss_bytes", name == "iwarp_mulpdu_bytes":
			t.Errorf("%s: %v", name, family.Metric)
		case strings.Contains(fmt.Sprint(family.Metric), `"unknown"`):
			t.Errorf("%s: %v", name, family.Metric)
		}
	}
}

// TestTraffic compares the metrics of two RNICs in one registry with what passed between them.
func TestTraffic(t *testing.T) {
	ctx := testrig.Within(t)
	server, client := iwarp.NewRNIC(iwarp.RNICConfig{}), iwarp.NewRNIC(iwarp.RNICConfig{})
	defer server.Close()
	defer client.Close()
	registry := prometheus.NewPedanticRegistry()
	testrig.Must(t, registry.Register(metrics.New(server, "server")))
	testrig.Must(t, registry.Register(metrics.New(client, "client")))

	ln, err := (&iwarp.ListenConfig{RNIC: server}).Listen(ctx, "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	there, err := server.AllocPD()
	testrig.Must(t, err)
	target, err := there.Register(make([]byte, 1000), iwarp.RemoteWrite|iwarp.RemoteRead)
	testrig.Must(t, err)
	var accepted sync.WaitGroup
	accepted.Go(func() {
		if req, err := ln.Accept(ctx); err == nil {
			_, _ = req.Accept(ctx, iwarp.AcceptConfig{PD: there})
		}
	})
	here, err := client.AllocPD()
	testrig.Must(t, err)
	qp, err := (&iwarp.Dialer{PD: here}).Dial(ctx, "tcp", ln.Addr().String())
	testrig.Must(t, err)
	defer qp.Close()
	mine, err := here.Register(make([]byte, 1000), iwarp.LocalWrite)
	testrig.Must(t, err)
	_, err = qp.Write(ctx, mine.Slice(0, 1000), target.Remote(0))
	testrig.Must(t, err)
	_, err = qp.Read(ctx, mine.Slice(0, 300), target.Remote(0)) // it comes after the Write
	testrig.Must(t, err)
	accepted.Wait() // which the QP's work does not wait for

	const want = `
# HELP iwarp_payload_sent_bytes_total Bytes of payload sent.
# TYPE iwarp_payload_sent_bytes_total counter
iwarp_payload_sent_bytes_total{device="client",opcode="RDMA Read Request"} 28
iwarp_payload_sent_bytes_total{device="client",opcode="RDMA Write"} 1000
iwarp_payload_sent_bytes_total{device="server",opcode="RDMA Read Response"} 300
# HELP iwarp_startups_established_total Startups that ended in a connection.
# TYPE iwarp_startups_established_total counter
iwarp_startups_established_total{device="client"} 1
iwarp_startups_established_total{device="server"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "iwarp_payload_sent_bytes_total",
		"iwarp_startups_established_total"); err != nil {
		t.Error(err)
	}
}
